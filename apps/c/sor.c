/* Red-black successive over-relaxation: plain sequential C, for comparison with the Rust programs.
 *
 *   cc -O3 -march=native -ffp-contract=off -o sor sor.c && ./sor ROWS COLUMNS STEPS [SEED [OMEGA]]
 *
 * The same grid, initial values, order of operations and digest as apps/src/sor (see mod.rs
 * there), so that equal digests mean equal grids. Prints the seconds of the whole run, the seconds
 * of the sweeps, and the digest.
 */
#define _POSIX_C_SOURCE 199309L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RED, BLACK };
enum { EVEN, ODD };

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double initial(uint64_t seed, uint64_t index)
{
    uint64_t bits = mix(seed + 0x9e3779b97f4a7c15u * (index + 1));
    return (double)(bits >> 11) * (1.0 / 9007199254740992.0);
}

static int columns_of(int colour, long row)
{
    return (row % 2 == 0) == (colour == RED) ? EVEN : ODD;
}

static inline double relaxed(double old, double above, double below, double left, double right,
                             double omega)
{
    return old + omega * (0.25 * ((above + below) + (left + right)) - old);
}

static void relax_run(long n, double *restrict out, const double *above, const double *below,
                      const double *left, const double *right, double omega)
{
    for (long k = 0; k < n; k++)
        out[k] = relaxed(out[k], above[k], below[k], left[k], right[k], omega);
}

static void relax(double *out, const double *above, const double *below, const double *same,
                  int which, long columns, double omega)
{
    long last = columns / 2;
    if (which == ODD) {
        relax_run(last, out, above, below, same, same + 1, omega);
        if (columns % 2 == 1)
            out[last] = relaxed(out[last], above[last], below[last], same[last], same[0], omega);
    } else if (columns % 2 == 1) {
        relax_run(last, out + 1, above + 1, below + 1, same, same + 1, omega);
    } else {
        relax_run(last - 1, out + 1, above + 1, below + 1, same, same + 1, omega);
        out[last] = relaxed(out[last], above[last], below[last], same[last - 1], out[0], omega);
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    if (argc < 4 || argc > 6) {
        fprintf(stderr, "usage: %s ROWS COLUMNS STEPS [SEED [OMEGA]]\n", argv[0]);
        return 2;
    }
    long rows = atol(argv[1]), columns = atol(argv[2]), steps = atol(argv[3]);
    uint64_t seed = argc > 4 ? strtoull(argv[4], NULL, 10) : 1;
    double omega = argc > 5 ? atof(argv[5]) : 1.5;
    if (rows < 1 || columns < 1 || steps < 1) {
        fprintf(stderr, "%s: sizes must be at least 1\n", argv[0]);
        return 2;
    }
    long len = columns / 2 + 1, stored = rows + 2;
    double *grid[2];
    double start = now();
    for (int colour = RED; colour <= BLACK; colour++) {
        grid[colour] = malloc((size_t)(stored * len) * sizeof(double));
        if (!grid[colour]) {
            perror("malloc");
            return 1;
        }
        for (long row = 0; row < stored; row++) {
            uint64_t before = (uint64_t)(row * 2 * len + (columns_of(colour, row) == ODD));
            for (long k = 0; k < len; k++)
                grid[colour][row * len + k] = initial(seed, before + 2 * (uint64_t)k);
        }
    }
    double swept_from = now();
    for (long step = 0; step < steps; step++)
        for (int colour = RED; colour <= BLACK; colour++)
            for (long row = 1; row <= rows; row++) {
                const double *same = grid[!colour] + row * len;
                relax(grid[colour] + row * len, same - len, same + len, same,
                      columns_of(colour, row), columns, omega);
            }
    double end = now();
    uint64_t digest = 0;
    for (long at = 0; at < 2 * stored * len; at++) {
        uint64_t bits;
        memcpy(&bits, grid[at / (stored * len)] + at % (stored * len), sizeof bits);
        digest += bits * (2 * (uint64_t)at + 1);
    }
    printf("seconds %.6f sweep_seconds %.6f digest %016llx\n", end - start, end - swept_from,
           (unsigned long long)digest);
    free(grid[RED]);
    free(grid[BLACK]);
    if (fflush(stdout) != 0) {
        perror("writing the result");
        return 1;
    }
    return 0;
}
