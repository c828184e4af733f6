/* A stencil over a global array with barriers; each thread's sum comes back through a local. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#define N 130
static double grid[2][N][N];
static pthread_barrier_t barrier;
struct part { int from, to, steps; double sum; };
static void *run(void *p) {
    struct part *part = p;
    for (int s = 0; s < part->steps; s++) {
        double (*a)[N] = grid[s % 2], (*b)[N] = grid[(s + 1) % 2];
        for (int i = part->from; i < part->to; i++)
            for (int j = 1; j < N - 1; j++)
                b[i][j] = 0.25 * (a[i - 1][j] + a[i + 1][j] + a[i][j - 1] + a[i][j + 1]);
        pthread_barrier_wait(&barrier);
    }
    for (int i = part->from; i < part->to; i++)
        for (int j = 1; j < N - 1; j++) part->sum += grid[part->steps % 2][i][j];
    pthread_exit(&part->sum);
}
int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 4;
    struct part parts[16];
    pthread_t t[16];
    double sum = 0;
    for (int k = 0; k < 2; k++) for (int i = 0; i < N; i++)
        grid[k][i][0] = grid[k][0][i] = 1 + sin(i);
    pthread_barrier_init(&barrier, NULL, threads);
    for (int i = 0; i < threads; i++) {
        int rows = (N - 2) / threads;
        parts[i] = (struct part){1 + i * rows, i == threads - 1 ? N - 1 : 1 + (i + 1) * rows,
            20, 0};
        pthread_create(&t[i], NULL, run, &parts[i]);
    }
    for (int i = 0; i < threads; i++) {
        void *v;
        pthread_join(t[i], &v);
        sum += *(double *)v;
    }
    printf("%.12f %.12f\n", sum, grid[0][64][64]);
    return 0;
}
