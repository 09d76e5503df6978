/* IDA on the implicit forms of a mechanical system, with dense LU and the exact matrix ∂F/∂Y + cj ∂F/∂Y′.

     index 2  (q, v, λ):      q′ − v = 0,          M v′ + Cᵀ λ − f = 0,   w(t, q, v) = 0
     GGL      (q, v, λ, μ):   q′ − v + Gᵀ μ = 0,   M v′ + Cᵀ λ − f = 0,   w(t, q, v) = 0,   g(t, q) = 0

   q and v have the tolerances rtol, atol; the multipliers have an absolute tolerance of their own and, if `suppress`, no part in the error test.
   Returns the flag of IDASolve; `seconds` is the time of IDASolve alone. */

#include "common.h"

#include <ida/ida.h>

typedef struct {
    casadi_function residual, matrix;
} Form;

static int residual(double t, N_Vector y, N_Vector yp, N_Vector out, void *data) {
    const double *arguments[] = {&t, N_VGetArrayPointer(y), N_VGetArrayPointer(yp)};
    double *results[] = {N_VGetArrayPointer(out)};
    return ((Form *)data)->residual(arguments, results, NULL, NULL, 0);
}

static int matrix(double t, double cj, N_Vector y, N_Vector yp, N_Vector r, SUNMatrix J, void *data, N_Vector a, N_Vector b, N_Vector c) {
    (void)r, (void)a, (void)b, (void)c;
    const double *arguments[] = {&t, N_VGetArrayPointer(y), N_VGetArrayPointer(yp), &cj};
    double *results[] = {SUNDenseMatrix_Data(J)};
    return ((Form *)data)->matrix(arguments, results, NULL, NULL, 0);
}

int run_ida(int ggl, double end, double rtol, double atol, double atol_multipliers, int suppress, double newton_tolerance, const double *y0,
            const double *yp0, double *out, double *seconds, long *counts, char *message) {
    Form form = ggl ? (Form){ggl_residual, ggl_matrix} : (Form){index2_residual, index2_matrix};
    const int states = 2 * COORDINATES, size = states + ROWS + (ggl ? POSITION_ROWS : 0);
    SUNContext context;
    SUNContext_Create(NULL, &context);
    N_Vector y = N_VNew_Serial(size, context), yp = N_VClone(y), id = N_VClone(y), tolerances = N_VClone(y);
    for (int i = 0; i < size; i++) {
        NV_Ith_S(y, i) = y0[i];
        NV_Ith_S(yp, i) = yp0[i];
        NV_Ith_S(id, i) = i < states;
        NV_Ith_S(tolerances, i) = i < states ? atol : atol_multipliers;
    }
    SUNMatrix J = SUNDenseMatrix(size, size, context);
    SUNLinearSolver solver = SUNLinSol_Dense(y, J, context);
    void *ida = IDACreate(context);
    *message = 0;
    IDASetErrHandlerFn(ida, keep_message, message);
    IDAInit(ida, residual, 0.0, y, yp);
    IDASVtolerances(ida, rtol, tolerances);
    IDASetUserData(ida, &form);
    IDASetId(ida, id);
    IDASetSuppressAlg(ida, suppress);
    IDASetNonlinConvCoef(ida, newton_tolerance);
    IDASetMaxNumSteps(ida, 1000000);
    IDASetStopTime(ida, end);
    IDASetLinearSolver(ida, solver, J);
    IDASetJacFn(ida, matrix);

    double t;
    const double begin = now();
    const int flag = IDASolve(ida, end, &t, y, yp, IDA_NORMAL);
    *seconds = now() - begin;

    memcpy(out, N_VGetArrayPointer(y), states * sizeof(double));
    IDAGetNumSteps(ida, counts + STEPS);
    IDAGetNumResEvals(ida, counts + RESIDUALS);
    IDAGetNumJacEvals(ida, counts + JACOBIANS);
    IDAGetNumErrTestFails(ida, counts + ERROR_FAILURES);
    IDAGetNumNonlinSolvConvFails(ida, counts + NEWTON_FAILURES);
    IDAFree(&ida);
    SUNLinSolFree(solver);
    SUNMatDestroy(J);
    N_VDestroy(y), N_VDestroy(yp), N_VDestroy(id), N_VDestroy(tolerances);
    SUNContext_Free(&context);
    return flag;
}
