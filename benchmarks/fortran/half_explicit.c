/* PHEM56 on the mechanical system itself, M a = f − Cᵀ λ, C v + g_t = 0, by dense LU. */

#include "../driver.h"
#include "problem.h"

#include <stdlib.h>

typedef void problem(int *, int *, int *, int *, int *, int *, int *, int *, int *, int *, int *, int *,
                     int *, int *, int *, int *, double *, double *, double *, double *, double *, double *,
                     double *, double *, double *, double *, double *, double *, double *, double *);
typedef void output(int *, int *, int *, int *, int *, int *, double *, double *, double *, double *,
                    double *, double *, int *);
extern void phem56_(int *, int *, int *, int *, problem *, double *, double *, double *, double *, double *,
                    double *, double *, double *, double *, double *, int *, output *, int *, double *, int *,
                    int *, int *, int *);
extern double pol4_(int *, int *, int *, int *, int *, int *, double *, double *);

/* The codes hand no data through. */
static Wanted wanted;
static long saved;

static void evaluate(int *what, int *nq, int *nv, int *nu, int *nl, int *ldg, int *ldf, int *lda, int *nblk,
                     int *nmrc, int *npgp, int *npfl, int *indg1, int *indg2, int *indfl1, int *indfl2,
                     double *t, double *q, double *v, double *u, double *lam, double *g, double *C, double *f,
                     double *minus_gamma, double *g_t, double *FL, double *dq, double *du, double *M) {
    (void)nu, (void)nl, (void)ldg, (void)ldf, (void)nblk, (void)nmrc, (void)npgp, (void)npfl, (void)indg1,
        (void)indg2, (void)indfl1, (void)indfl2, (void)u, (void)lam, (void)FL, (void)du;
    const double *arguments[] = {t, q, v};
    double mass[VELOCITIES * VELOCITIES];
    const int k = *what;
    if (k == 1 || k == 7 || k == 8) {
        double *results[] = {mass, f, k == 1 ? C : NULL};
        half_explicit_dynamics(arguments, results, NULL, NULL, 0);
    }
    if (k == 9 || k == 10 || k == 11) {
        double *results[] = {mass, C, g_t};
        half_explicit_matrices(arguments, results, NULL, NULL, 0);
    }
    if (k == 1 || k >= 7)
        for (int j = 0; j < *nv; j++)
            memcpy(M + j * *lda, mass + j * *nv, *nv * sizeof(double));
    if (k == 1 || k == 2 || k == 10)
        memcpy(dq, v, *nq * sizeof(double));
    if (k == 3 || k == 6) {
        double *results[] = {k == 6 ? C : NULL, g_t};
        half_explicit_rows(arguments, results, NULL, NULL, 0);
    }
    if (k == 4) {
        double *results[] = {g};
        half_explicit_positions(arguments, results, NULL, NULL, 0);
    }
    if (k == 5 || k == 7) {
        double *results[] = {minus_gamma, k == 5 ? f : NULL};
        half_explicit_curvature(arguments, results, NULL, NULL, 0);
    }
}

static void save(int *step, int *nq, int *nv, int *nu, int *nl, int *size, double *q, double *v, double *u,
                 double *a, double *lam, double *dense, int *flag) {
    (void)nl, (void)u, (void)a, (void)lam, (void)flag;
    if (*step == 1)
        return;
    if (wanted.count < 0) {
        if (saved >= -wanted.count)
            return;
        memcpy(wanted.states + saved * STATES, q, *nq * sizeof(double));
        memcpy(wanted.states + saved++ * STATES + *nq, v, *nv * sizeof(double));
        return;
    }
    for (const double t = dense[0] + dense[1]; saved < wanted.count && wanted.times[saved] <= t * (1 + 1e-14);
         saved++)
        for (int i = 1, first = 1; i <= STATES; i++)
            wanted.states[saved * STATES + i - 1] =
                pol4_(&i, &first, nq, nv, nu, size, (double *)wanted.times + saved, dense);
}

int run_half_explicit(int rows, int project, double end, double tolerance, const double *y0, int count,
                      const double *times, double *states, double *seconds, long *counts, char *message) {
    int nq = STATES - VELOCITIES, nv = VELOCITIES, nu = 0, nl = rows, zero = 0, flag = 0,
        out = count == 1 ? 0 : 2;
    int n = nq + nv + nl, lwork = 40 * n * n + 400 * n + 1000, liwork = 200 * n + 60 * n * n + 1000,
        iwork_size = liwork;
    double *work = calloc(lwork, sizeof(double)), *q = malloc((3 * nv + nq + nl + 1) * sizeof(double)),
           *v = q + nq, *a = v + nv, *lam = a + nv, u = 0.0;
    int *iwork = calloc(liwork, sizeof(int));
    double t = 0.0, h = 1e-4 * end, rtol = tolerance, atol = tolerance;
    memcpy(q, y0, STATES * sizeof(double));
    memset(a, 0, (nv + nl) * sizeof(double));
    wanted = (Wanted){count, times, states};
    saved = 0;
    iwork[10] = MOST_STEPS, iwork[12] = project;
    const double begin = now();
    phem56_(&nq, &nv, &nu, &nl, evaluate, &t, q, v, &u, a, lam, &end, &h, &rtol, &atol, &zero, save, &out,
            work, &lwork, iwork, &iwork_size, &flag);
    *seconds = now() - begin;
    if (count == 1)
        memcpy(states, q, STATES * sizeof(double)), saved = 1;
    memset(counts, 0, COUNTS * sizeof(long));
    counts[SAVED] = saved, counts[STEPS] = iwork[31], counts[RESIDUALS] = iwork[33],
    counts[ERROR_FAILURES] = iwork[32];
    free(work), free(q), free(iwork);
    if (flag < 0) {
        const char *reasons[] = {"input is not consistent", "more steps than allowed", "step size too small",
                                 "matrix is singular", "the start cannot be projected"};
        strncpy(message, flag >= -5 ? reasons[-flag - 1] : "failed", MESSAGE_SIZE - 1);
    }
    return flag;
}
