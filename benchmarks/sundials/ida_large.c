/* IDA on an implicit form of a large system, with its banded solver or with KLU and the exact matrix ∂F/∂Y +
   cj ∂F/∂Y′.

   Residual and nonzeros of the matrix are the kernels of this package, called by address: status = kernel(t,
   (Y, Y′), cj, context, out).  The matrix is given by columns, as `begins` and `rows`.  `id` tells which
   unknowns are differential; the others have an absolute tolerance of their own and no part in the error
   test. Returns the flag of IDASolve; `seconds` is the time of IDASolve alone. */

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ida/ida.h>
#include <nvector/nvector_serial.h>
#include <sunlinsol/sunlinsol_band.h>
#include <sunmatrix/sunmatrix_band.h>
#ifdef KLU
#include <sunlinsol/sunlinsol_klu.h>
#include <sunmatrix/sunmatrix_sparse.h>
#endif

enum { STEPS, RESIDUALS, JACOBIANS, ERROR_FAILURES, NEWTON_FAILURES, ORDERS, COUNTS };

typedef int (*Kernel)(double t, const double *y, const double *z, double *context, double *out);

typedef struct {
    Kernel residual, nonzeros;
    double *context, *both, *values;
    int size, klu;
    const int *begins, *rows;
} Problem;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void keep_message(int code, const char *module, const char *function, char *text, void *message) {
    (void)code, (void)module, (void)function;
    if (!*(char *)message)
        strncpy(message, text, 399);
}

static void join(Problem *p, N_Vector y, N_Vector yp) {
    memcpy(p->both, N_VGetArrayPointer(y), p->size * sizeof(double));
    memcpy(p->both + p->size, N_VGetArrayPointer(yp), p->size * sizeof(double));
}

static int residual(double t, N_Vector y, N_Vector yp, N_Vector out, void *data) {
    Problem *p = data;
    join(p, y, yp);
    return p->residual(t, p->both, p->both, p->context, N_VGetArrayPointer(out));
}

static int matrix(double t, double cj, N_Vector y, N_Vector yp, N_Vector r, SUNMatrix J, void *data,
                  N_Vector a, N_Vector b, N_Vector c) {
    (void)r, (void)a, (void)b, (void)c;
    Problem *p = data;
    join(p, y, yp);
#ifdef KLU
    if (p->klu) {
        for (int j = 0; j <= p->size; j++)
            SUNSparseMatrix_IndexPointers(J)[j] = p->begins[j];
        for (int k = 0; k < p->begins[p->size]; k++)
            SUNSparseMatrix_IndexValues(J)[k] = p->rows[k];
        return p->nonzeros(t, p->both, &cj, p->context, SUNSparseMatrix_Data(J));
    }
#endif
    const int status = p->nonzeros(t, p->both, &cj, p->context, p->values);
    for (int j = 0; j < p->size; j++) {
        double *column = SUNBandMatrix_Column(J, j);
        for (int k = p->begins[j]; k < p->begins[j + 1]; k++)
            column[p->rows[k] - j] = p->values[k];
    }
    return status;
}

int run_ida_large(void *residual_kernel, void *nonzeros_kernel, double *context, int size, const int *begins,
                  const int *rows, int lower, int upper, int klu, const double *id, double end, double rtol,
                  double atol, double atol_multipliers, double newton_tolerance, const double *y0,
                  const double *yp0, double *out, double *seconds, long *counts, char *message) {
    Problem p = {(Kernel)residual_kernel,
                 (Kernel)nonzeros_kernel,
                 context,
                 malloc(2 * size * sizeof(double)),
                 malloc(begins[size] * sizeof(double)),
                 size,
                 klu,
                 begins,
                 rows};
    SUNContext sundials;
    SUNContext_Create(NULL, &sundials);
    N_Vector y = N_VNew_Serial(size, sundials), yp = N_VClone(y), differential = N_VClone(y),
             tolerances = N_VClone(y);
    for (int i = 0; i < size; i++) {
        NV_Ith_S(y, i) = y0[i];
        NV_Ith_S(yp, i) = yp0[i];
        NV_Ith_S(differential, i) = id[i];
        NV_Ith_S(tolerances, i) = id[i] > 0 ? atol : atol_multipliers;
    }
#ifdef KLU
    SUNMatrix J = klu ? SUNSparseMatrix(size, size, begins[size], CSC_MAT, sundials)
                      : SUNBandMatrix(size, upper, lower, sundials);
    SUNLinearSolver solver = klu ? SUNLinSol_KLU(y, J, sundials) : SUNLinSol_Band(y, J, sundials);
#else
    SUNMatrix J = SUNBandMatrix(size, upper, lower, sundials);
    SUNLinearSolver solver = SUNLinSol_Band(y, J, sundials);
#endif
    void *ida = IDACreate(sundials);
    *message = 0;
    IDASetErrHandlerFn(ida, keep_message, message);
    IDAInit(ida, residual, 0.0, y, yp);
    IDASVtolerances(ida, rtol, tolerances);
    IDASetUserData(ida, &p);
    IDASetId(ida, differential);
    IDASetSuppressAlg(ida, 1);
    IDASetNonlinConvCoef(ida, newton_tolerance);
    IDASetMaxNumSteps(ida, 1000000);
    IDASetLinearSolver(ida, solver, J);
    IDASetJacFn(ida, matrix);

    /* Step by step up to the end, so that the orders can be counted; output costs nothing in this mode. */
    double t = 0.0;
    int flag = 0, order = 0;
    counts[ORDERS] = 0;
    const double begin = now();
    while (t < end && flag >= 0) {
        flag = IDASolve(ida, end, &t, y, yp, IDA_ONE_STEP);
        IDAGetLastOrder(ida, &order);
        counts[ORDERS] += order;
    }
    *seconds = now() - begin;
    if (flag >= 0)
        IDAGetDky(ida, end, 0, y);

    memcpy(out, N_VGetArrayPointer(y), size * sizeof(double));
    IDAGetNumSteps(ida, counts + STEPS);
    IDAGetNumResEvals(ida, counts + RESIDUALS);
    IDAGetNumJacEvals(ida, counts + JACOBIANS);
    IDAGetNumErrTestFails(ida, counts + ERROR_FAILURES);
    IDAGetNumNonlinSolvConvFails(ida, counts + NEWTON_FAILURES);
    IDAFree(&ida);
    SUNLinSolFree(solver);
    SUNMatDestroy(J);
    N_VDestroy(y), N_VDestroy(yp), N_VDestroy(differential), N_VDestroy(tolerances);
    SUNContext_Free(&sundials);
    free(p.both), free(p.values);
    return flag;
}
