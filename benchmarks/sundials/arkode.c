/* ARKODE's explicit Runge–Kutta formulas on the underlying ODE; the solution is projected after each step by
   ERKStepSetPostprocessStepFn if `projected`.

   `order` 5 is Dormand & Prince's formula with 7 stages, 8 Fehlberg's with 13, the only one of that order in
   ARKODE. Returns the flag of ERKStepEvolve; `seconds` is the time of ERKStepEvolve alone. */

#include "underlying.h"

#include <arkode/arkode_erkstep.h>

static int project_step(double t, N_Vector y, void *data) {
    double total[STATES], none[STATES] = {0};
    const int flag = project(t, N_VGetArrayPointer(y), total, none, data);
    for (int i = 0; i < STATES; i++)
        NV_Ith_S(y, i) += total[i];
    return flag;
}

int run_arkode(int order, double end, double rtol, double atol, int projected, const double *y0, int count,
               const double *times, double *states, double *seconds, long *counts, char *message) {
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
    ERKStepSetMaxNumSteps(arkode, MOST_STEPS);
    ERKStepSetStopTime(arkode, end);
    if (projected)
        ERKStepSetPostprocessStepFn(arkode, project_step);

    const Wanted wanted = {count, times, states};
    const Report report = {seconds, counts, message};
#define STEP(until, mode) ERKStepEvolve(arkode, until, y, &t, mode)
    DRIVE(end, wanted, report, y, STATES, ARK_NORMAL, ARK_ONE_STEP, STEP)
#undef STEP

    ERKStepGetNumSteps(arkode, counts + STEPS);
    ERKStepGetNumRhsEvals(arkode, counts + RESIDUALS);
    ERKStepGetNumErrTestFails(arkode, counts + ERROR_FAILURES);
    ERKStepFree(&arkode);
    N_VDestroy(y);
    SUNContext_Free(&context);
    return flag;
}

/* The model alone, `count` times; each evaluation needs the one before, as in a solver. */
void repeat(const double **arguments, double **results, long count) {
    double *y = (double *)arguments[1];
    for (long k = 0; k < count; k++) {
        derivative(arguments, results, NULL, NULL, 0);
        for (int i = 0; i < STATES; i++)
            y[i] += 1e-13 * results[0][i];
    }
}
