/* CVODE on the underlying ODE q′ = v, v′ = a(t, q, v), with projection onto the constraints.

   BDF with Newton's method on a dense matrix by CasADi; CVODE projects after each step if `projected`.
   `adams`: Adams formulas with fixed-point iteration instead, for which CVODE has no projection; the solution
   drifts. Returns the flag of CVode; `seconds` is the time of CVode alone. */

#include "underlying.h"

#include <cvode/cvode.h>
#include <cvode/cvode_proj.h>
#include <sunlinsol/sunlinsol_dense.h>
#include <sunmatrix/sunmatrix_dense.h>
#include <sunnonlinsol/sunnonlinsol_fixedpoint.h>

static int jacobian(double t, N_Vector y, N_Vector fy, SUNMatrix J, void *data, N_Vector a, N_Vector b,
                    N_Vector c) {
    (void)fy, (void)data, (void)a, (void)b, (void)c;
    const double *arguments[] = {&t, N_VGetArrayPointer(y)};
    double *results[] = {SUNDenseMatrix_Data(J)};
    return derivative_jacobian(arguments, results, NULL, NULL, 0);
}

static int project_step(double t, N_Vector y, N_Vector correction, double eps, N_Vector error, void *data) {
    (void)eps;
    double none[STATES] = {0};
    return project(t, N_VGetArrayPointer(y), N_VGetArrayPointer(correction),
                   error ? N_VGetArrayPointer(error) : none, data);
}

int run_cvode(int adams, double end, double rtol, double atol, int projected, double newton_tolerance,
              const double *y0, int count, const double *times, double *states, double *seconds, long *counts,
              char *message) {
    Tolerances tolerances = {rtol, atol};
    SUNContext context;
    SUNContext_Create(NULL, &context);
    N_Vector y = N_VNew_Serial(STATES, context);
    memcpy(N_VGetArrayPointer(y), y0, STATES * sizeof(double));
    SUNMatrix J = SUNDenseMatrix(STATES, STATES, context);
    SUNLinearSolver solver = SUNLinSol_Dense(y, J, context);
    SUNNonlinearSolver fixed_point = SUNNonlinSol_FixedPoint(y, 0, context);
    void *cvode = CVodeCreate(adams ? CV_ADAMS : CV_BDF, context);
    *message = 0;
    CVodeSetErrHandlerFn(cvode, keep_message, message);
    CVodeInit(cvode, right_side, 0.0, y);
    CVodeSStolerances(cvode, rtol, atol);
    CVodeSetUserData(cvode, &tolerances);
    CVodeSetMaxNumSteps(cvode, MOST_STEPS);
    CVodeSetStopTime(cvode, end);
    CVodeSetNonlinConvCoef(cvode, newton_tolerance);
    if (adams) {
        CVodeSetNonlinearSolver(cvode, fixed_point);
    } else {
        CVodeSetLinearSolver(cvode, solver, J);
        CVodeSetJacFn(cvode, jacobian);
        if (projected)
            CVodeSetProjFn(cvode, project_step);
    }

    const Wanted wanted = {count, times, states};
    const Report report = {seconds, counts, message};
#define STEP(until, mode) CVode(cvode, until, y, &t, mode)
    DRIVE(end, wanted, report, y, STATES, CV_NORMAL, CV_ONE_STEP, STEP)
#undef STEP

    CVodeGetNumSteps(cvode, counts + STEPS);
    CVodeGetNumRhsEvals(cvode, counts + RESIDUALS);
    if (!adams)
        CVodeGetNumJacEvals(cvode, counts + JACOBIANS);
    CVodeGetNumErrTestFails(cvode, counts + ERROR_FAILURES);
    CVodeGetNumNonlinSolvConvFails(cvode, counts + NEWTON_FAILURES);
    CVodeFree(&cvode);
    SUNNonlinSolFree(fixed_point);
    SUNLinSolFree(solver);
    SUNMatDestroy(J);
    N_VDestroy(y);
    SUNContext_Free(&context);
    return flag;
}
