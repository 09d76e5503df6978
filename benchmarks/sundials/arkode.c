/* ARKODE's explicit Runge–Kutta formulas on the underlying ODE; the solution is projected after each step by ERKStepSetPostprocessStepFn.

   `order` 5 is Dormand & Prince's formula with 7 stages, 8 Fehlberg's with 13, the only one of that order in ARKODE.
   Returns the flag of ERKStepEvolve; `seconds` is the time of ERKStepEvolve alone. */

#include "underlying.h"

#include <arkode/arkode_erkstep.h>

static int project_step(double t, N_Vector y, void *data) {
    double total[STATES], none[STATES] = {0};
    const int flag = project(t, N_VGetArrayPointer(y), total, none, data);
    for (int i = 0; i < STATES; i++) NV_Ith_S(y, i) += total[i];
    return flag;
}

int run_arkode(int order, double end, double rtol, double atol, const double *y0, double *out, double *seconds, long *counts, char *message) {
    Tolerances tolerances = {rtol, atol};
    SUNContext context;
    SUNContext_Create(NULL, &context);
    N_Vector y = N_VNew_Serial(STATES, context);
    memcpy(N_VGetArrayPointer(y), y0, STATES * sizeof(double));
    void *arkode = ERKStepCreate(right_side, 0.0, y, context);
    *message = 0;
    ERKStepSetErrHandlerFn(arkode, keep_message, message);
    ERKStepSStolerances(arkode, rtol, atol);
    ERKStepSetUserData(arkode, &tolerances);
    ERKStepSetTableNum(arkode, order == 8 ? ARKODE_FEHLBERG_13_7_8 : ARKODE_DORMAND_PRINCE_7_4_5);
    ERKStepSetMaxNumSteps(arkode, 1000000);
    ERKStepSetStopTime(arkode, end);
    ERKStepSetPostprocessStepFn(arkode, project_step);

    double t;
    const double begin = now();
    const int flag = ERKStepEvolve(arkode, end, y, &t, ARK_NORMAL);
    *seconds = now() - begin;

    memcpy(out, N_VGetArrayPointer(y), STATES * sizeof(double));
    memset(counts, 0, COUNTS * sizeof(long));
    ERKStepGetNumSteps(arkode, counts + STEPS);
    ERKStepGetNumRhsEvals(arkode, counts + RESIDUALS);
    ERKStepGetNumErrTestFails(arkode, counts + ERROR_FAILURES);
    ERKStepFree(&arkode);
    N_VDestroy(y);
    SUNContext_Free(&context);
    return flag;
}
