"""Expressions that can only be true or false, or whole numbers."""

from __future__ import annotations

import casadi as ca

_CONDITIONS = frozenset({ca.OP_LT, ca.OP_LE, ca.OP_EQ, ca.OP_NE, ca.OP_NOT, ca.OP_AND, ca.OP_OR})
_WHOLE = _CONDITIONS | {ca.OP_FLOOR, ca.OP_CEIL, ca.OP_SIGN}
_KEEPS_WHOLE = frozenset(
    {
        *(ca.OP_ADD, ca.OP_SUB, ca.OP_MUL, ca.OP_NEG, ca.OP_SQ, ca.OP_TWICE),
        *(ca.OP_FABS, ca.OP_FMIN, ca.OP_FMAX, ca.OP_IF_ELSE_ZERO),
    }
)


def is_whole(expression: ca.SX) -> bool:
    """Whether an expression is built so that it can only be a whole number."""
    known: dict[int, bool] = {}

    def judge(node: ca.SX) -> bool:
        key = node.element_hash()
        if key not in known:
            if node.is_constant():
                known[key] = float(node).is_integer()
            else:
                op, last = node.op(), range(node.n_dep())
                operands = last[1:] if op == ca.OP_IF_ELSE_ZERO else last
                known[key] = op in _WHOLE or (
                    op in _KEEPS_WHOLE and all(judge(node.dep(i)) for i in operands)
                )
        return known[key]

    return judge(expression)


def is_condition(expression: ca.SX) -> bool:
    """Whether an expression is a comparison, a logical operation or a constant."""
    return expression.is_constant() or expression.op() in _CONDITIONS
