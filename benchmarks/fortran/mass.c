/* RADAU5, RADAU and RODAS on 𝓜 Y′ = F(t, Y) with a constant matrix 𝓜 and the exact Jacobian, by dense LU.

   The first `second_order` components have Y_i′ = Y_{i + second_order}, which the codes eliminate; functions
   and matrices of problem.h have the other rows only.  `index` counts the unknowns of index 1, 2 and 3. */

#include "../driver.h"
#include "problem.h"

#include <stdlib.h>

typedef void right_side(const int *, const double *, const double *, double *, void *, int *);
typedef void jacobian(const int *, const double *, const double *, double *, const int *, void *, int *);
typedef void matrix(const int *, double *, const int *, void *, int *);
typedef void output(const int *, const double *, const double *, const double *, const double *, const int *,
                    const int *, void *, int *, int *);
typedef void radau_code(int *, right_side *, double *, double *, double *, double *, double *, double *,
                        int *, jacobian *, int *, int *, int *, matrix *, int *, int *, int *, output *,
                        int *, double *, int *, int *, int *, void *, int *, int *);
extern radau_code radau5_, radau_;
extern void rodas_(int *, right_side *, int *, double *, double *, double *, double *, double *, double *,
                   int *, jacobian *, int *, int *, int *, void (*)(void), int *, matrix *, int *, int *,
                   int *, output *, int *, double *, int *, int *, int *, void *, int *, int *);
typedef double interpolation(int *, double *, const double *, const int *);
extern interpolation contr5_, contra_, contro_;

enum { RADAU5, RADAU, RODAS };
static interpolation *const interpolations[] = {contr5_, contra_, contro_};

typedef struct {
    casadi_function right, jacobian, mass;
} Form;

typedef struct {
    Form form;
    int code, second_order;
    Wanted wanted;
    long saved;
} Run;

static void F(const int *n, const double *t, const double *Y, double *out, void *data, int *ipar) {
    (void)n, (void)ipar;
    const Run *run = data;
    const int k = run->second_order;
    const double *arguments[] = {t, Y};
    double *results[] = {out + k};
    memcpy(out, Y + k, k * sizeof(double));
    run->form.right(arguments, results, NULL, NULL, 0);
}

static void J(const int *n, const double *t, const double *Y, double *out, const int *rows, void *data,
              int *ipar) {
    (void)n, (void)rows, (void)ipar;
    const double *arguments[] = {t, Y};
    double *results[] = {out};
    ((Run *)data)->form.jacobian(arguments, results, NULL, NULL, 0);
}

static void M(const int *n, double *out, const int *rows, void *data, int *ipar) {
    (void)n, (void)rows, (void)ipar;
    double *results[] = {out};
    ((Run *)data)->form.mass(NULL, results, NULL, NULL, 0);
}

static void save(const int *step, const double *before, const double *t, const double *Y, const double *dense,
                 const int *size, const int *n, void *data, int *ipar, int *flag) {
    (void)before, (void)n, (void)ipar, (void)flag;
    Run *run = data;
    Wanted *wanted = &run->wanted;
    if (*step == 1)
        return;
    if (wanted->count < 0) {
        if (run->saved < -wanted->count)
            memcpy(wanted->states + run->saved++ * STATES, Y, STATES * sizeof(double));
        return;
    }
    for (; run->saved < wanted->count && wanted->times[run->saved] <= *t; run->saved++)
        for (int i = 1; i <= STATES; i++) {
            double s = wanted->times[run->saved];
            double *state = wanted->states + run->saved * STATES + i - 1;
            *state = s == *t ? Y[i - 1] : interpolations[run->code](&i, &s, dense, size);
        }
}

static void nothing(void) {}

int run_mass(int code, int form, int size, int second_order, int diagonal, int autonomous, const int *index,
             double end, double tolerance, const double *absolute, const double *y0, int count,
             const double *times, double *states, double *seconds, long *counts, char *message) {
    const Form forms[] = {{mass_index1_right, mass_index1_jacobian, mass_index1_matrix},
                          {mass_index2_right, mass_index2_jacobian, mass_index2_matrix},
                          {mass_index3_right, mass_index3_jacobian, mass_index3_matrix},
                          {mass_ggl_right, mass_ggl_jacobian, mass_ggl_matrix}};
    Run run = {forms[form], code, second_order, {count, times, states}, 0};
    int n = size, one = 1, zero = 0, vectors = 1, rows = size - second_order, band = diagonal ? 0 : rows,
        flag = 0, time_dependent = !autonomous;
    int lwork = 60 * n * n + 200 * n + 1000, liwork = 30 * n + 100, out = count != 1;
    double *work = calloc(lwork, sizeof(double)), *Y = malloc(n * sizeof(double)),
           *rtol = malloc(n * sizeof(double)), *atol = malloc(n * sizeof(double));
    int *iwork = calloc(liwork, sizeof(int));
    double t = 0.0, h = 1e-6 * end;
    memcpy(Y, y0, n * sizeof(double));
    memcpy(atol, absolute, n * sizeof(double));
    for (int i = 0; i < n; i++)
        rtol[i] = tolerance;
    const double begin = now();
    if (code == RODAS) {
        iwork[0] = MOST_STEPS, iwork[8] = second_order;
        rodas_(&n, F, &time_dependent, &t, Y, &end, &h, rtol, atol, &vectors, J, &one, &rows, &rows, nothing,
               &zero, M, &one, &band, &band, save, &out, work, &lwork, iwork, &liwork, &run, NULL, &flag);
    } else {
        iwork[1] = MOST_STEPS, iwork[4] = index[0], iwork[5] = index[1], iwork[6] = index[2],
        iwork[8] = second_order;
        (code == RADAU5 ? radau5_ : radau_)(&n, F, &t, Y, &end, &h, rtol, atol, &vectors, J, &one, &rows,
                                            &rows, M, &one, &band, &band, save, &out, work, &lwork, iwork,
                                            &liwork, &run, NULL, &flag);
    }
    *seconds = now() - begin;
    if (count == 1)
        memcpy(states, Y, STATES * sizeof(double)), run.saved = 1;
    memset(counts, 0, COUNTS * sizeof(long));
    counts[SAVED] = run.saved, counts[STEPS] = iwork[16], counts[RESIDUALS] = iwork[13],
    counts[JACOBIANS] = iwork[14], counts[ERROR_FAILURES] = iwork[17];
    free(work), free(Y), free(rtol), free(atol), free(iwork);
    if (flag < 0) {
        const char *reasons[] = {"input is not consistent", "more steps than allowed", "step size too small",
                                 "matrix is repeatedly singular"};
        strncpy(message, flag >= -4 ? reasons[-flag - 1] : "failed", MESSAGE_SIZE - 1);
    }
    return flag;
}
