/* IDA on the chain of bars of `holonome.mechanisms.chain`, as one would write it for IDA by hand: loops over
   the bars, and a banded matrix.

   Unknowns and equations are ordered bar by bar, its joint to the bar before first: λ, (μ,) q, v. That gives
   the half bandwidth 7 for index 2, 9 for GGL. With h half a bar, the joint closes r_i − h e(φ_i) − r_{i−1} −
   h e(φ_{i−1}) = 0, e(φ) = (cos φ, sin φ). */

#include "ida.h"

typedef struct {
    int links, ggl, block; /* unknowns of a bar: 8, or 10 with μ */
    double h, m, J, gravity;
} Chain;

/* Gᵀ of bar i times the multipliers at `at` of its joint and of the next one. */
static void pull(const Chain *c, const double *Y, int i, int at, double cos_, double sin_, double out[3]) {
    const double *here = Y + i * c->block + at, *next = here + c->block, none[2] = {0, 0};
    if (i == c->links - 1)
        next = none;
    out[0] = here[0] - next[0];
    out[1] = here[1] - next[1];
    out[2] = c->h * sin_ * (here[0] + next[0]) - c->h * cos_ * (here[1] + next[1]);
}

static int residual(double t, N_Vector y, N_Vector yp, N_Vector out, void *data) {
    (void)t;
    const Chain *c = data;
    const double *Y = N_VGetArrayPointer(y), *dY = N_VGetArrayPointer(yp), h = c->h;
    double *F = N_VGetArrayPointer(out),
           ends[4] = {0, 0, 0, 0}; /* position and velocity of the last bar's end */
    const int body = c->block - 6;
    for (int i = 0; i < c->links; i++) {
        const double *q = Y + i * c->block + body, *v = q + 3, *dq = dY + i * c->block + body, *dv = dq + 3;
        double *r = F + i * c->block, *kinematics = r + body, *dynamics = kinematics + 3, force[3],
               shift[3] = {0, 0, 0};
        const double cos_ = cos(q[2]), sin_ = sin(q[2]);
        pull(c, Y, i, 0, cos_, sin_, force);
        if (c->ggl)
            pull(c, Y, i, 2, cos_, sin_, shift);
        for (int k = 0; k < 3; k++) {
            kinematics[k] = dq[k] - v[k] + shift[k];
            dynamics[k] = (k < 2 ? c->m : c->J) * dv[k] + force[k];
        }
        dynamics[1] += c->m * c->gravity;
        r[0] = v[0] + h * sin_ * v[2] - ends[2];
        r[1] = v[1] - h * cos_ * v[2] - ends[3];
        if (c->ggl) {
            r[2] = q[0] - h * cos_ - ends[0];
            r[3] = q[1] - h * sin_ - ends[1];
        }
        ends[0] = q[0] + h * cos_, ends[1] = q[1] + h * sin_;
        ends[2] = v[0] - h * sin_ * v[2], ends[3] = v[1] + h * cos_ * v[2];
    }
    return 0;
}

static int matrix(double t, double cj, N_Vector y, N_Vector yp, N_Vector r, SUNMatrix J, void *data,
                  N_Vector a, N_Vector b, N_Vector d) {
    (void)t, (void)yp, (void)r, (void)a, (void)b, (void)d;
    const Chain *c = data;
    const double *Y = N_VGetArrayPointer(y), h = c->h;
    const int n = c->block, body = n - 6;
    SUNMatZero(J);
    for (int i = 0; i < c->links; i++) {
        const int joint = i * n, q = joint + body, v = q + 3, last = i == c->links - 1;
        const double *here = Y + joint, none[4] = {0, 0, 0, 0}, *next = last ? none : here + n,
                     omega = here[body + 5];
        const double cos_ = cos(here[body + 2]), sin_ = sin(here[body + 2]);
        for (int k = 0; k < 3; k++) {
            SM_ELEMENT_B(J, q + k, q + k) = cj;
            SM_ELEMENT_B(J, q + k, v + k) = -1;
            SM_ELEMENT_B(J, v + k, v + k) = cj * (k < 2 ? c->m : c->J);
        }
        SM_ELEMENT_B(J, v + 2, q + 2) += h * cos_ * (here[0] + next[0]) + h * sin_ * (here[1] + next[1]);
        if (c->ggl)
            SM_ELEMENT_B(J, q + 2, q + 2) += h * cos_ * (here[2] + next[2]) + h * sin_ * (here[3] + next[3]);
        for (int side = 0; side < 2 - last;
             side++) { /* the bar as the second of its joint, and as the first of the next one */
            const double sign = side ? -1 : 1;
            const int at = joint + side * n;
            for (int level = 0; level <= c->ggl; level++) { /* λ and w, μ and g */
                const int multiplier = at + 2 * level, row = level ? q : v, column = level ? q : v;
                for (int k = 0; k < 2; k++) {
                    const double turn = k ? -h * cos_ : h * sin_;
                    SM_ELEMENT_B(J, row + k, multiplier + k) = sign;
                    SM_ELEMENT_B(J, row + 2, multiplier + k) = turn;
                    SM_ELEMENT_B(J, multiplier + k, column + k) = sign;
                    SM_ELEMENT_B(J, multiplier + k, column + 2) = turn;
                }
            }
            SM_ELEMENT_B(J, at, q + 2) = h * cos_ * omega;
            SM_ELEMENT_B(J, at + 1, q + 2) = h * sin_ * omega;
        }
    }
    return 0;
}

int run_chain(int links, int ggl, double length, double mass, double gravity, double end,
              const Settings *settings, const int *kinds, const double *y0, const double *yp0, int count,
              const double *times, double *states, double *seconds, long *counts, char *message) {
    const double bar = length / links, m = mass / links;
    Chain chain = {links, ggl, ggl ? 10 : 8, bar / 2, m, m * bar * bar / 12, gravity};
    const int size = links * chain.block;
    const Equations equations = {size, size, chain.block - 1, residual, matrix, &chain};
    return integrate(equations, *settings, end, kinds, y0, yp0, (Wanted){count, times, states},
                     (Report){seconds, counts, message});
}
