// Destructors of Python objects, in C: Python runs signal handlers in its own, where
// what they raise, as Ctrl-C does, would be lost, and with it what is to be given back.
#ifndef PYGSAMPLER_OWNER_H
#define PYGSAMPLER_OWNER_H

#include <stdint.h>

typedef struct _object PyObject;

// What a class takes as its __del__. An object has its number in the engine in the
// attribute _number, 0 for none, and the copy of the engine that it is a number of in
// _generation: the destructor ends the thing of that kind with that number. Needs the
// interpreter's lock. NULL with an exception set where there is no memory.
PyObject *pgs_destructor(int64_t kind, int64_t generation);

// How many destructors are between giving up the interpreter's lock and having it again.
int64_t pgs_owner_running(void);

// After it destructors leave everything as it is: the interpreter ends.
void pgs_owner_shut(void);

#endif
