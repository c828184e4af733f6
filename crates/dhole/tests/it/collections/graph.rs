use std::io::Write;

use dhole::collections::{DistGraph, GraphArc, GraphError};
use dhole::{Config, NodeId};
use tempfile::NamedTempFile;

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a file");
    file.write_all(text.as_bytes()).expect("it has room");
    file
}

#[test]
fn a_graph_in_a_file_is_read_by_all_nodes() {
    let dimacs = file("c roads\np sp 3 3\na 1 2 70\na 3 1 9\na 1 1 5\n");
    let matrix = "%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n2 1 0.5\n3 3 4e2\n";
    let matrix = file(matrix);
    let run = Config::nodes(2).run(|w| {
        let graph = DistGraph::<u64>::from_file(w, dimacs.path())?;
        assert_eq!((graph.vertices(), graph.arcs()), (3, 3));
        let row = |vertex| -> Vec<_> {
            let arcs = graph.neighbours(w, vertex).iter();
            arcs.map(|GraphArc { to, weight }| (*to, *weight)).collect()
        };
        assert_eq!(
            [0, 1, 2].map(row),
            [vec![(1, 70), (0, 5)], vec![], vec![(0, 9)]]
        );
        let graph = DistGraph::<f32>::from_file(w, matrix.path())?;
        assert_eq!((graph.vertices(), graph.arcs()), (3, 3));
        assert_eq!(graph.neighbours(w, 2)[0].weight, 400.0);
        let plain = DistGraph::<()>::from_file(w, matrix.path())?;
        assert_eq!(plain.neighbours(w, 0)[0].to, 1);
        Ok(())
    });
    run.expect("it runs");
}

#[test]
fn a_file_that_ends_early_is_an_error_on_every_node() {
    let file = file("p sp 3 3\na 1 2 70\na 3 1 9\n");
    let run = Config::nodes(3).run(|w| {
        let error = DistGraph::<u8>::from_file(w, file.path()).expect_err("it ends early");
        let GraphError::File(fault) = &error else {
            panic!("{error}");
        };
        assert_eq!((fault.line, &*fault.file), (4, file.path()));
        assert!(
            fault.cause.contains("ends early: it has 2 lines of arcs"),
            "{error}"
        );
        w.barrier()?; // no node hangs
        let error = DistGraph::<i8>::from_file(w, "/").expect_err("a folder");
        assert!(matches!(error, GraphError::File(_)), "{error}");
        Ok(w.node() == NodeId(0))
    });
    assert!(run.expect("it runs").value);
}
