/* IDA with given residual and matrix; the first `states` unknowns are returned, which are all that have the
 * tolerances rtol, atol. */

#pragma once

#include "common.h"

#include <ida/ida.h>
#include <sunlinsol/sunlinsol_band.h>
#include <sunlinsol/sunlinsol_dense.h>
#include <sunmatrix/sunmatrix_band.h>
#include <sunmatrix/sunmatrix_dense.h>

/* `kinds` says of each unknown whether it is a position (0), a velocity (1) or an algebraic unknown (2). The
   latter two have absolute tolerances of their own; algebraic unknowns have no part in the error test if
   `suppress`. */
typedef struct {
    double rtol, atol, atol_velocity, atol_algebraic, newton_tolerance;
    int suppress, max_order;
} Settings;

enum { POSITION, VELOCITY, ALGEBRAIC };

typedef struct {
    int size, states, half_bandwidth; /* 0 for a dense matrix */
    IDAResFn residual;
    IDALsJacFn matrix;
    void *data;
} Equations;

static int integrate(Equations equations, Settings settings, double end, const int *kinds, const double *y0,
                     const double *yp0, Wanted wanted, Report report) {
    SUNContext context;
    SUNContext_Create(NULL, &context);
    N_Vector y = N_VNew_Serial(equations.size, context), yp = N_VClone(y), id = N_VClone(y),
             tolerances = N_VClone(y);
    const double atol[] = {settings.atol, settings.atol_velocity, settings.atol_algebraic};
    for (int i = 0; i < equations.size; i++) {
        NV_Ith_S(y, i) = y0[i];
        NV_Ith_S(yp, i) = yp0[i];
        NV_Ith_S(id, i) = kinds[i] != ALGEBRAIC;
        NV_Ith_S(tolerances, i) = atol[kinds[i]];
    }
    const int band = equations.half_bandwidth;
    SUNMatrix J = band ? SUNBandMatrix(equations.size, band, band, context)
                       : SUNDenseMatrix(equations.size, equations.size, context);
    SUNLinearSolver solver = band ? SUNLinSol_Band(y, J, context) : SUNLinSol_Dense(y, J, context);
    void *ida = IDACreate(context);
    *report.message = 0;
    IDASetErrHandlerFn(ida, keep_message, report.message);
    IDAInit(ida, equations.residual, 0.0, y, yp);
    IDASVtolerances(ida, settings.rtol, tolerances);
    IDASetUserData(ida, equations.data);
    IDASetId(ida, id);
    IDASetSuppressAlg(ida, settings.suppress);
    IDASetNonlinConvCoef(ida, settings.newton_tolerance);
    IDASetMaxOrd(ida, settings.max_order);
    IDASetMaxNumSteps(ida, MOST_STEPS);
    IDASetStopTime(ida, end);
    IDASetLinearSolver(ida, solver, J);
    IDASetJacFn(ida, equations.matrix);

#define STEP(until, mode) IDASolve(ida, until, &t, y, yp, mode)
    DRIVE(end, wanted, report, y, equations.states, IDA_NORMAL, IDA_ONE_STEP, STEP)
#undef STEP

    IDAGetNumSteps(ida, report.counts + STEPS);
    IDAGetNumResEvals(ida, report.counts + RESIDUALS);
    IDAGetNumJacEvals(ida, report.counts + JACOBIANS);
    IDAGetNumErrTestFails(ida, report.counts + ERROR_FAILURES);
    IDAGetNumNonlinSolvConvFails(ida, report.counts + NEWTON_FAILURES);
    IDAFree(&ida);
    SUNLinSolFree(solver);
    SUNMatDestroy(J);
    N_VDestroy(y), N_VDestroy(yp), N_VDestroy(id), N_VDestroy(tolerances);
    SUNContext_Free(&context);
    return flag;
}
