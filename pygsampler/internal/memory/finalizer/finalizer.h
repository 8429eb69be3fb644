// Destructors of Python objects, in C: Python runs signal handlers in its own, where
// what they raise, as Ctrl-C does, would be lost, and with it what is to be given back.
#ifndef PYGSAMPLER_FINALIZER_H
#define PYGSAMPLER_FINALIZER_H

#include <stdint.h>

typedef struct _object PyObject;

enum { PGS_FINALIZER_KINDS = 16 };

// Returns the method that the class `type` takes as its __del__. An object has its
// number in the engine in the attribute _number, 0 for none, and in _generation the copy
// of the engine that gave the number: the method ends the thing of that kind with that
// number. Its attribute _out, if it has one that is not 0, is the address of two words that
// a call writes its result to: a memory and a number, which Ctrl-C may have kept Python from
// taking. They are released too. A copy has one generation. Needs the interpreter's lock.
// NULL with an exception set for want of memory, and for a kind that is not below
// PGS_FINALIZER_KINDS.
PyObject *pgs_destructor(PyObject *type, int64_t kind, int64_t generation);

// Returns the number of destructors that have released the interpreter's lock and not got it back.
int64_t pgs_finalizer_running(void);

// After it destructors leave everything as it is: the interpreter ends.
void pgs_finalizer_shut(void);

#endif
