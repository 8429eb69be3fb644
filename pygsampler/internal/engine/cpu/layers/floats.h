// The functions of reduce.h for ids of type ID and every kind of floats.
#define SAME(x) (x)

#define IN_PLACE 1
#define WIDE SAME
#define NARROW SAME
#define EXP expf
#define LOG logf
#define VALUE float
#define SUM float
#define NAME(name) NAMED(name##_float)
#include "body.h"
#include "attention.h"
#include "edge_scores.h"
#undef AHEAD
#undef VALUE
#undef SUM
#undef NAME
#undef EXP
#undef LOG
#define EXP exp
#define LOG log
#define VALUE double
#define SUM double
#define NAME(name) NAMED(name##_double)
#include "body.h"
#include "attention.h"
#include "edge_scores.h"
#undef AHEAD
#undef VALUE
#undef SUM
#undef NAME
#undef WIDE
#undef NARROW
#undef IN_PLACE
#undef EXP
#undef LOG

#define IN_PLACE 0
#define EXP expf
#define LOG logf
#define VALUE uint16_t
#define SUM float
#define WIDE pgs_of_half
#define NARROW pgs_to_half
#define NAME(name) NAMED(name##_half)
#include "body.h"
#include "attention.h"
#include "edge_scores.h"
#undef AHEAD
#undef WIDE
#undef NARROW
#undef NAME
#define WIDE pgs_of_brain
#define NARROW pgs_to_brain
#define NAME(name) NAMED(name##_brain)
#include "body.h"
#include "attention.h"
#include "edge_scores.h"
#undef AHEAD
#undef WIDE
#undef NARROW
#undef NAME
#undef VALUE
#undef SUM
#undef IN_PLACE
#undef EXP
#undef LOG

#define NAME(name) NAMED(name)
#include "transpose.h"
#undef NAME
#undef SAME
