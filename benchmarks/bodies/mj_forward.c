/* Seconds of one mj_forward, in a loop in C: the best of many.
 *
 * The argument is a model that mj_saveModel wrote; qpos and qvel come from standard input. Writes the seconds
 * of a call, the iterations of the solver and the accelerations of the joints. */

#include <mujoco/mujoco.h>
#include <stdio.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

int main(int argc, char **argv) {
    mjModel *m = argc == 2 ? mj_loadModel(argv[1], NULL) : NULL;
    if (!m)
        return 1;
    mjData *d = mj_makeData(m);
    for (int i = 0; i < m->nq; ++i)
        if (scanf("%lf", &d->qpos[i]) != 1)
            return 2;
    for (int i = 0; i < m->nv; ++i)
        if (scanf("%lf", &d->qvel[i]) != 1)
            return 2;
    const int calls = 2000;
    double best = 1e9;
    for (int repeat = 0; repeat < 50; ++repeat) {
        const double began = now();
        for (int i = 0; i < calls; ++i) {
            mj_forward(m, d);
            d->qvel[0] += 1e-18 * d->qacc[m->nv - 1]; /* every call depends on the one before */
        }
        const double took = (now() - began) / calls;
        if (took < best)
            best = took;
    }
    printf("%.6e %d", best, d->solver_niter[0]);
    for (int i = 0; i < m->nv; ++i)
        printf(" %.17g", d->qacc[i]);
    printf("\n");
    return 0;
}
