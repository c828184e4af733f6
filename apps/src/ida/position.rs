//! Positions of the 15-puzzle.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::options::BadInput;

/// A position: the tile on each of 16 squares, row by row, four bits each; 0 is the blank. In the
/// goal the blank is first and the tiles follow in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Position {
    tiles: u64,
    blank: u8,
    /// How many moves the tiles are from their squares, added up (Manhattan).
    distance: u16,
}

/// A direction in which the blank moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Move {
    /// To the square above.
    Up,
    /// To the square on the left.
    Left,
    /// To the square on the right.
    Right,
    /// To the square below.
    Down,
}

impl Move {
    /// All four.
    pub const ALL: [Move; 4] = [Move::Up, Move::Left, Move::Right, Move::Down];

    /// The move that takes this one back.
    pub fn back(self) -> Move {
        match self {
            Move::Up => Move::Down,
            Move::Left => Move::Right,
            Move::Right => Move::Left,
            Move::Down => Move::Up,
        }
    }
}

/// How far a tile on a square is from its own.
fn apart(tile: u64, square: u8) -> u16 {
    let (tile, square) = (tile as u8, square);
    u16::from((tile / 4).abs_diff(square / 4) + (tile % 4).abs_diff(square % 4))
}

impl Position {
    /// The position of a list of tiles, separated by commas.
    ///
    /// # Errors
    /// [`BadInput::Position`] when it is no list of the numbers 0 to 15, or cannot be solved.
    pub fn parse(given: &str) -> Result<Position, BadInput> {
        let wrong = |what: String| BadInput::Position {
            given: given.to_owned(),
            what,
        };
        let words: Vec<&str> = given.split(',').map(str::trim).collect();
        if words.len() != 16 {
            return Err(wrong(format!("{} tiles, and not 16", words.len())));
        }
        let mut seen = [false; 16];
        let mut squares = [0_u8; 16];
        for (square, word) in words.iter().enumerate() {
            let tile = word.parse::<u8>().ok().filter(|tile| *tile < 16);
            let Some(tile) = tile else {
                return Err(wrong(format!("{word:?} is no number from 0 to 15")));
            };
            if std::mem::replace(&mut seen[usize::from(tile)], true) {
                return Err(wrong(format!("{tile} is there twice")));
            }
            squares[square] = tile;
        }
        let position = Position::of(squares);
        match position.is_solvable(&squares) {
            true => Ok(position),
            false => Err(wrong(
                "no moves solve it: two tiles would have to change places".into(),
            )),
        }
    }

    fn of(squares: [u8; 16]) -> Position {
        let mut position = Position {
            tiles: 0,
            blank: 0,
            distance: 0,
        };
        for (square, tile) in squares.into_iter().enumerate() {
            let tile = u64::from(tile);
            position.tiles |= tile << (4 * square);
            match tile {
                0 => position.blank = square as u8,
                tile => position.distance += apart(tile, square as u8),
            }
        }
        position
    }

    /// Every move exchanges the blank with a tile, so the parity of the permutation goes with the
    /// blank's distance from its square.
    fn is_solvable(&self, squares: &[u8; 16]) -> bool {
        let later = |i: usize| {
            squares[i + 1..]
                .iter()
                .filter(move |tile| **tile < squares[i])
        };
        let inversions: usize = (0..16).map(|i| later(i).count()).sum();
        let blank = self.blank / 4 + self.blank % 4;
        inversions % 2 == usize::from(blank) % 2
    }

    /// Moves that are needed at least.
    #[inline]
    pub fn distance(&self) -> u32 {
        u32::from(self.distance)
    }

    /// The position after a move, if the blank can make it.
    #[inline]
    pub fn after(&self, to: Move) -> Option<Position> {
        let blank = self.blank;
        let square = match to {
            Move::Up => blank.checked_sub(4)?,
            Move::Left if !blank.is_multiple_of(4) => blank - 1,
            Move::Right if blank % 4 != 3 => blank + 1,
            Move::Down if blank < 12 => blank + 4,
            _ => return None,
        };
        let tile = self.tiles >> (4 * square) & 15;
        Some(Position {
            tiles: self.tiles & !(15 << (4 * square)) | tile << (4 * blank),
            blank: square,
            distance: self.distance - apart(tile, square) + apart(tile, blank),
        })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tiles = (0..16).map(|square| (self.tiles >> (4 * square) & 15).to_string());
        f.write_str(&tiles.collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOAL: &str = "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15";

    #[test]
    fn the_goal_is_solved_and_moves_are_taken_back() {
        let goal = Position::parse(GOAL).unwrap();
        assert_eq!((goal.distance(), goal.to_string()), (0, GOAL.to_owned()));
        let moved = goal.after(Move::Right).unwrap().after(Move::Down).unwrap();
        assert_eq!(moved.distance(), 2);
        assert_eq!(moved.after(Move::Up).unwrap().after(Move::Left), Some(goal));
        assert_eq!((goal.after(Move::Up), goal.after(Move::Left)), (None, None));
    }

    #[test]
    fn what_is_no_position_is_refused_with_its_reason() {
        let wrong = |given: &str| Position::parse(given).unwrap_err().to_string();
        assert!(wrong("1,2,3").contains("3 tiles"));
        assert!(wrong(&GOAL.replace("15", "16")).contains("\"16\""));
        assert!(wrong(&GOAL.replace("15", "14")).contains("14 is there twice"));
        assert!(wrong(&GOAL.replace("14,15", "15,14")).contains("change places"));
    }
}
