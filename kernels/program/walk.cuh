// Random walks of a program: uniform roots, and walkers that step against edges.
//
// Go twin: internal/program/run/walk.go.
#pragma once
#include "program/edges.cuh"

// k of all vertices, uniformly and with replacement.
__device__ __noinline__ bool roots(Machine& m, List& list, u32 k, u32 site) {
  if (!m.all().n) k = 0;
  if (k >= TOO_MUCH) return m.fail(STATUS_TOO_MANY_EDGES, k);
  Id* to = m.take<Id>(k);
  if (!m.well()) return false;
  Stream stream = m.stream(site, PURPOSE_NEGATIVES);
  m.each(k, [&](u32 i) { to[i] = (Id)draw_below(state_of(stream, i), 0, (u64)m.all().n); });
  m.put(list, List{k, to});
  m.loosen();
  m.meet();
  return true;
}

// Where a walker from each vertex of a list is, at first and after each of k steps. One that finds no edge stays. A walker
// is the thread's that made its root. What is met is claimed where that is asked for.
__device__ __noinline__ bool walk(Machine& m, List& list, List from, u32 k, u32 site, bool claims) {
  u64 n = from.n * ((u64)k + 1);
  if (n >= TOO_MUCH) return m.fail(STATUS_TOO_MANY_EDGES, n);
  Id* to = m.take<Id>(n);
  if (!m.well()) return false;
  u64 numbering = claims ? m.next_numbering() : 0;
  Stream stream = m.stream(site, PURPOSE_WALKING);
  m.each(from.n, [&](u32 i) {
    Id v = from(i);
    u64 state = state_of(stream, i);
    u32 at = i;
    for (u32 step = 0;; step++) {
      to[at] = v;
      if (claims) m.claim_unseen(numbering, at, v);
      if (step == k) break;
      u64 start = m.start((u64)v), degree = m.start((u64)v + 1) - start;
      if (degree) v = ((const Id*)m.a().indices)[start + draw_below(state, step, degree)];
      at += from.n;
    }
  });
  m.put(list, List{(u32)n, to});
  m.barrier();
  return true;
}
