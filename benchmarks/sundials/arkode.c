/* ARKODE's explicit Runge–Kutta formulas on the underlying ODE; the solution is projected after each step by ERKStepSetPostprocessStepFn.

   `order` is that of the formula: 5 is Dormand & Prince's, 8 is ARKODE's 8(5,3) where it has none other.  Returns the flag of ERKStepEvolve; `seconds` is its time alone. */

#include "underlying.h"

#include <arkode/arkode_erkstep.h>

static int project_solution(double t, N_Vector y, void *data) {
    double total[STATES];
    N_Vector correction = ((Tolerances *)data)->scratch;
    N_VSetArrayPointer(total, correction);
    const int flag = project(t, y, correction, 0.0, NULL, data);
    for (int i = 0; i < STATES; i++) NV_Ith_S(y, i) += total[i];
    return flag;
}
