/* IDA on the implicit forms of a mechanical system, with dense LU and the exact matrix ∂F/∂Y + cj ∂F/∂Y′;
   harness/export.py states and writes the forms.

   Returns the flag of IDASolve; `seconds` is the time of IDASolve alone. */

#include "ida.h"
#include "problem.h"

typedef struct {
    casadi_function residual, matrix;
} Form;

static int residual(double t, N_Vector y, N_Vector yp, N_Vector out, void *data) {
    const double *arguments[] = {&t, N_VGetArrayPointer(y), N_VGetArrayPointer(yp)};
    double *results[] = {N_VGetArrayPointer(out)};
    return ((Form *)data)->residual(arguments, results, NULL, NULL, 0);
}

static int matrix(double t, double cj, N_Vector y, N_Vector yp, N_Vector r, SUNMatrix J, void *data,
                  N_Vector a, N_Vector b, N_Vector c) {
    (void)r, (void)a, (void)b, (void)c;
    const double *arguments[] = {&t, N_VGetArrayPointer(y), N_VGetArrayPointer(yp), &cj};
    double *results[] = {SUNDenseMatrix_Data(J)};
    return ((Form *)data)->matrix(arguments, results, NULL, NULL, 0);
}

int run_ida(int form, int size, double end, const Settings *settings, const int *kinds, const double *y0,
            const double *yp0, int count, const double *times, double *states, double *seconds, long *counts,
            char *message) {
    Form forms[] = {
        {index1_residual, index1_matrix}, {index2_residual, index2_matrix}, {ggl_residual, ggl_matrix}};
    const Equations equations = {size, STATES, 0, residual, matrix, forms + form};
    return integrate(equations, *settings, end, kinds, y0, yp0, (Wanted){count, times, states},
                     (Report){seconds, counts, message});
}
