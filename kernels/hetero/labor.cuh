// LABOR on heterogeneous graphs: the selection of the edges of a hop, in the launch that samples the
// batch (hetero_batch.cuh).
//
// Source: M. F. Balin, U. V. Catalyurek, "Layer-Neighbor Sampling: Defusing Neighborhood Explosion
// in GNNs", NeurIPS 2023.
//
// The rows of a hop are one list, relation by relation, and so do all of their edges that are not
// excluded: the candidates. A row has the role of a column in a program, so the steps are those of
// programs (program/program.cuh): the search of factors, the smallest keys of a column, sums in a
// fixed order, and memory that is allocated once its size is known. Blocks process equal slices of
// the candidates, across rows and relations.
//
// Phases of a hop, between those of hetero_batch.cuh:
//   rows     read, and the offsets of their candidates                                  sum, barrier
//   weigh    weights over the largest of a row, if there are weights                     2 barriers
//   decide   exact: keys, then the bound of each row's smallest; else factors, in rounds of LABOR-i
//   keep     a bit for each selected candidate, and their number for each relation       sum
//   emit     the selected candidates: sources, ids, factors, claims                      barrier
//   after    the offsets of rows among them; weights for means
//
// In rounds, the sources of a relation have slots in a table of pairs of relation and node
// (neighbor/disjoint_map.cuh).
//
// Kernels: labor.cu. Go twin: internal/engine/cpu/labor.go.
#pragma once
#define PROGRAM_INDPTR_BITS 64
#define PROGRAM_EDGE_ID_BITS 64
#include "program/choose.cuh"
#include "hetero/hetero_batch.cuh"

// Mirrors heteroLaborArgs in internal/engine/cuda/labor.go; loading compares the sizes.
struct LaborArgs {
  HeteroArgs batch;
  ProgramArgs work;  // of which memory, counters and slots are used
  const u64* salts;  // of each type of vertices
  long long rounds;  // of LABOR-i; -1: while the expected number of vertices falls
  u32 exact, same_layers, batches, scaled, weighted, unused;
};

// The factor of a row: known, or searched for k edges.
struct RowFactor {
  long long k;
  bool known;
  double c;
};
// LABOR's search in columns that row(column) tells apart.
template <class A, class Q, class Row>
struct RowSearch : LaborSearch<A, Q> {
  Row row;
  __device__ __forceinline__ RowSearch(A a, Q q, double2* notes, Row row) : LaborSearch<A, Q>{0, a, q, notes}, row(row) {}
  __device__ __forceinline__ bool asks(u32 column, u32 n) const { return this->asks_of(row(column).k, n); }
  __device__ __forceinline__ bool known(u32 column, Candidates all, double& c) const {
    RowFactor own = row(column);
    if (!own.known) return this->known_of(own.k, all, c);
    c = own.c;
    return true;
  }
  __device__ __forceinline__ double goal(u32 column, u32 n, double values) const { return this->goal_of(row(column).k, n, values); }
};
template <class A, class Q, class Row>
__device__ __forceinline__ RowSearch<A, Q, Row> row_search(A a, Q q, double2* notes, Row row) { return RowSearch<A, Q, Row>(a, q, notes, row); }

// A table of pairs of relation and vertex, as slot_of takes one.
struct SourceTable {
  u64* keys;
  u32 table_bits, tree_shift;
};

template <typename I>
struct Labor;
template <typename I>
struct HeteroOf<Labor<I>> {
  typedef I Id;
  enum { OWN_ROWS = true };
};

template <typename I>
struct Labor : Hetero<Labor<I>, false> {
  typedef Hetero<Labor<I>, false> Batch;
  using Batch::a;
  using Batch::s;
  using Batch::edge_at;
  using Batch::row_at;
  const LaborArgs& l;
  Machine m;
  u64 most_work = 0;  // bytes of working memory that a hop took

  // Of a hop.
  Edges all;        // its columns are the rows, and n the candidates
  double* plain;   // the factor of each row without weights and rounds
  const double* factors;
  double* weights;  // of each candidate, over the largest of its row; null: all are 1
  u64* keys;        // where exact: of each candidate its number over its weight
  u64* limits;      // and of each row what its chosen ones are up to
  u32* upto;
  u64* last;        // and the smallest of the others
  u64* pi;          // of rounds: what a source's chances are in the ratio of, by slot
  u32* slot;        // of each candidate
  u32 *kept, *ranks;  // of each 32 candidates which stay, and how many stay before them
  u32 earlier;        // how many stay before the warp's candidates

  __device__ Labor(const LaborArgs& l, HeteroShared& s, u64* shared)
      : Batch(l.batch, s, shared), l(l), m(l.work) {
    // Nobody counts before the blocks have met.
    m.each(l.work.num_cells, [&](u32 i) { l.work.cells[i] = 0; });
  }

  // ---- rows and candidates -------------------------------------------------------------------

  // The blocks' meetings are one sequence, whoever calls them.
  __device__ void enter() {
    __syncthreads();
    if (threadIdx.x == 0) m.s().meeting = s.meeting;
    __syncthreads();
  }
  // Whether the batch goes on.
  __device__ bool leave() {
    __syncthreads();
    if (threadIdx.x == 0) s.meeting = m.s().meeting;
    __syncthreads();
    if (!m.well()) this->end(m.now().status, m.now().detail);
    return m.well();
  }

  __device__ u32 relation_of(u32 row) const { return this->find(row_at, a.num_relations, row); }
  __device__ double weight(u32 i) const { return weights ? weights[i] : 1.0; }
  __device__ static double capped(double c) { return c < LABOR_LARGE ? c : LABOR_LARGE; }
  __device__ static double at_most_one(double p) { return p < 1 ? p : 1; }

  // f(i, row, relation, is) of each candidate, by whole warps; `is` is false for lanes without one.
  template <class F>
  __device__ __forceinline__ void each(F f) {
    Machine::Span mine = m.span(all.n);
    if (mine.lo >= mine.hi) return;
    u32 row = column_of(all.begins, all.columns.n, mine.lo), relation = relation_of(row);
#pragma unroll 1
    for (u32 i0 = mine.lo; i0 < mine.hi; i0 += 32) {
      u32 i = i0 + (threadIdx.x & 31);
      bool is = i < mine.hi;
      if (is) {
        row = column_from(all.begins, all.columns.n, row, i);
        while (relation + 1 < a.num_relations && row_at[relation + 1] <= row) relation++;
      }
      f(i, row, relation, is);
    }
  }
  // The CSC position of candidate i, of a row.
  __device__ __forceinline__ u64 place(const HeteroRelation& r, u32 row, u32 i) const {
    u64 start = a.rows[row].x, pick = i - all.begins[row];
    return r.num_excluded ? kept_position(a.excluded + r.excluded_at, r.num_excluded, start, pick) : start + pick;
  }
  // Go twin: weightAt.
  __device__ __forceinline__ u64 weight_at(const HeteroRelation& r, u32 row, u64 p) const {
    return p == a.rows[row].x ? r.sums[p] : r.sums[p] - r.sums[p - 1];
  }
  // The number of a vertex, which all of its edges have.
  __device__ __forceinline__ double uniform_of(const Dependent& numbers, u64 v, u32 type) const {
    return numbers([&](const Stream& of) {
      u64 state = row_state(of, v);
      if (a.mixed) state = state_of_type(state, l.salts[type]);
      return uniform(draw_bits(state, 0));
    });
  }

  // Reads the rows of a hop; where their candidates begin.
  __device__ bool read_rows(u32 items, u32 hop) {
    auto count = [&](u32 i) -> u32 {
      u32 relation = relation_of(i);
      const HeteroRelation& r = a.relations[relation];
      ulonglong2 row = make_ulonglong2(0, 0);
      if (this->fanout_of(relation, hop)) {
        HeteroRows g;
        this->view(g, r);
        row = g.row_of((u64)this->list(r.dst)[this->first[r.dst] + i - row_at[relation]]);
      }
      a.rows[i] = row;
      return at_most(row.y);
    };
    Machine::Scan scan;
    if (!m.counted(items, scan, count)) return false;
    u32* begins = m.take<u32>((u64)items + 1);
    plain = m.take<double>(items);
    u64* largest = m.take<u64>(l.weighted ? items : 0);
    last = m.take<u64>(l.exact && a.factors ? items : 0);
    if (!m.well()) return false;
    m.placed(items, scan, [&](u32 i) { return at_most(a.rows[i].y); }, [&](u32 i, u32 begin, u32 own) {
      long long k = this->fanout_of(relation_of(i), hop);
      begins[i] = begin;
      plain[i] = k < 0 || own <= (u64)k ? 1.0 : op_div((double)k, (double)own);
      if (l.weighted) largest[i] = 0;
      if (l.exact && a.factors) last[i] = NO_KEY;
    });
    if (m.reporter()) begins[items] = scan.total;
    all = Edges{scan.total, List{items, nullptr}, begins};
    factors = plain, weights = nullptr, pi = nullptr;
    m.barrier();
    return !l.weighted || weigh(largest);
  }
  __device__ bool weigh(u64* largest) {
    weights = m.take<double>(all.n);
    if (!m.well()) return false;
    each([&](u32 i, u32 row, u32 relation, bool is) {
      const HeteroRelation& r = a.relations[relation];
      u64 own = is && r.alias ? weight_at(r, row, place(r, row, i)) : 0;
      if (__match_any_sync(~0u, row) == ~0u) {
        own = warp_max(own);
        if ((threadIdx.x & 31) == 0 && own) atomicMax(largest + row, own);
      } else if (own) {
        atomicMax(largest + row, own);
      }
    });
    m.barrier();
    each([&](u32 i, u32 row, u32 relation, bool is) {
      if (!is) return;
      const HeteroRelation& r = a.relations[relation];
      weights[i] = r.alias ? op_div((double)weight_at(r, row, place(r, row, i)), (double)load_relaxed(largest + row)) : 1.0;
    });
    m.barrier();
    return true;
  }

  // ---- exact ---------------------------------------------------------------------------------

  // Whether an edge of a row is a copy of one before it there that is not excluded. Go twin: csc.Copies.Is.
  __device__ __noinline__ bool copy_of(const HeteroRelation& r, const u32* copies, u64 p) const {
    for (u32 back = copies[p]; back; back = copies[p]) {
      p -= back;
      const u64* excluded = a.excluded + r.excluded_at;
      u64 at = excluded_below(excluded, r.num_excluded, p);
      if (at == r.num_excluded || excluded[at] != p) return true;
    }
    return false;
  }
  // The number of its own that a copy has. Go twin: numberCopies.
  __device__ __noinline__ double uniform_of_copy(const Dependent& numbers, const HeteroRelation& r, u64 v, u64 p) const {
    u64 draw = (r.edge_id_bits ? read(r.edge_ids, r.edge_id_bits, p) : p) + 1;
    return numbers([&](const Stream& of) {
      u64 state = row_state(of, v);
      if (a.mixed) state = state_of_type(state, l.salts[r.src]);
      return uniform(draw_bits64(state, draw));
    });
  }

  // Of each row the bound of its smallest numbers over weights.
  __device__ bool bound_rows(u32 hop, const Dependent& numbers) {
    keys = m.take<u64>(all.n), limits = m.take<u64>(all.columns.n), upto = m.take<u32>(all.columns.n);
    if (!m.well()) return false;
    each([&](u32 i, u32 row, u32 relation, bool is) {
      if (!is) return;
      const HeteroRelation& r = a.relations[relation];
      u64 p = place(r, row, i), v = (u64)((const I*)r.indices)[p];
      const u32* copies = (const u32*)r.keys;
      bool copy = copies && copies[p] && copy_of(r, copies, p);
      keys[i] = bits_of(op_div(copy ? uniform_of_copy(numbers, r, v, p) : uniform_of(numbers, v, r.src), weight(i)));
    });
    m.barrier();
    return column_bounds(m, all, keys, [&](u32 row) { return this->fanout_of(relation_of(row), hop); }, limits, upto);
  }
  __device__ bool chosen(u32 i, u32 row) const {
    return keys[i] < limits[row] || (keys[i] == limits[row] && i - all.begins[row] <= upto[row]);
  }

  // ---- chances -------------------------------------------------------------------------------

  // The factors of all rows whose relation is not done; q are the ratios of candidates.
  template <class Q, class Row>
  __device__ bool solve(Q q, Row row) {
    double2* notes = m.take<double2>(all.n);
    auto ratio = [&](u32 i, u32) { return q(i); };
    if (!m.well() || !factors_of(m, factors, all, row_search([&](u32 i) { return weight(i); }, ratio, notes, row))) return false;
    m.sync();
    return true;
  }
  // By weight; rows without weights have theirs.
  __device__ bool solve_by_weight(u32 hop) {
    return solve([&](u32 i) { return weight(i); }, [&](u32 row) {
      u32 relation = relation_of(row);
      long long k = this->fanout_of(relation, hop);
      return RowFactor{k, k <= 0 || !a.relations[relation].alias, plain[row]};
    });
  }
  __device__ double ratio(u32 i) const { return of_bits(load_relaxed(pi + slot[i])); }

  // pi and factors in rounds of LABOR-i.
  __device__ bool importance(u32 hop) {
    const u64 FREE = ~0ull;
    if (all.n > 1u << 29) return m.fail(STATUS_TOO_MANY_EDGES, all.n);
    u32 relations = a.num_relations, bits = 10, shift = 0;
    while (bits < 31 && 1u << bits < 2 * all.n) bits++;
    u64 most_nodes = 1;
    for (u32 t = 0; t < a.types; t++) most_nodes = max(most_nodes, this->nodes_of(t));
    while (shift < 63 && most_nodes >> shift) shift++;
    u32 size = 1u << bits;
    SourceTable table{m.take<u64>(size), bits, shift};
    u64* most = m.take<u64>(size);
    pi = m.take<u64>(size), slot = m.take<u32>(all.n);
    u64* expected = m.take<u64>(2 * (u64)relations);
    if (!m.well()) return false;
    m.each(size, [&](u32 i) { table.keys[i] = FREE, pi[i] = most[i] = 0; });
    m.each(2 * relations, [&](u32 i) { expected[i] = 0; });
    // Of each relation whether it is done, and how many vertices were expected.
    u64 *done = this->maps, *before = this->shift, *own = this->found;
    for (u32 r = threadIdx.x; r < relations; r += THREADS) done[r] = this->fanout_of(r, hop) <= 0, before[r] = INFINITE;
    m.barrier();
    each([&](u32 i, u32 row, u32 relation, bool is) {
      if (!is) return;
      const HeteroRelation& r = a.relations[relation];
      slot[i] = slot_of(table, relation, (u64)((const I*)r.indices)[place(r, row, i)]);
    });
    if (l.weighted && !solve_by_weight(hop)) return false;
    // The largest of each source's rows.
    auto largest = [&](u64* to, bool by_weight) {
      each([&](u32 i, u32 row, u32 relation, bool is) {
        if (!is || done[relation]) return;
        double c = capped(factors[row]);
        if (by_weight) c = __dmul_rn(c, weight(i));
        u64 found = bits_of(c), *at = to + slot[i];
        if (load_relaxed(at) < found) atomicMax(at, found);
      });
      m.barrier();
    };
    largest(pi, true);
    u64 used = m.now().used;
    u32 cells = m.now().cells;
#pragma unroll 1
    for (long long round = 0;; round++) {
      u64* now = expected + (round & 1) * relations;
      m.each(size, [&](u32 i) {
        u64 key = table.keys[i];
        if (key == FREE || done[key >> shift]) return;
        double x = of_bits(pi[i]);
        if (round) x = __dmul_rn(x, of_bits(most[i]));
        pi[i] = bits_of(capped(x)), most[i] = 0;
      });
      m.each(relations, [&](u32 r) { now[r] = 0; });
      m.each(SEARCH_CELLS, [&](u32 i) { l.work.cells[cells + i] = 0; });
      m.barrier();
      // What a round takes the next one has.
      m.set(m.now().used, used), m.set(m.now().cells, cells);
      const double* known = factors;
      bool goes_on = solve([&](u32 i) { return ratio(i); }, [&](u32 row) {
        u32 relation = relation_of(row);
        return RowFactor{this->fanout_of(relation, hop), done[relation] != 0, known[row]};
      });
      if (!goes_on) return false;
      if (round + 1 == l.rounds) return true;
      largest(most, false);
      if (l.rounds >= 0) continue;
      for (u32 r = threadIdx.x; r < relations; r += THREADS) own[r] = 0;
      __syncthreads();
      m.each(size, [&](u32 i) {
        u64 key = table.keys[i];
        if (key == FREE || done[key >> shift]) return;
        // Go twin: labor.Expect.
        double p = at_most_one(__dmul_rn(of_bits(pi[i]), of_bits(most[i])));
        atomicAdd(own + (key >> shift), (u64)__dmul_rn(p, 0x1p32));
      });
      __syncthreads();
      for (u32 r = threadIdx.x; r < relations; r += THREADS)
        if (own[r]) atomicAdd(now + r, own[r]);
      m.barrier();
      // Go twin: labor.Falls.
      u64 open = 0, still;
      for (u32 r = threadIdx.x; r < relations; r += THREADS) {
        if (done[r]) continue;
        double x = (double)load_relaxed(now + r);
        done[r] = !(x < __dmul_rn(of_bits(before[r]), 0.9999));
        before[r] = bits_of(x);
        open += !done[r];
      }
      rows_before(open, still, s.parts);
      if (!still) return true;
    }
  }
  // The chance of a candidate where edges stay by their chances.
  __device__ __forceinline__ double chance(u32 i, u32 row, u32 relation, u32 hop) const {
    if (this->fanout_of(relation, hop) < 0) return 1;
    double q = pi ? ratio(i) : weight(i);
    return at_most_one(__dmul_rn(capped(factors[row]), q));
  }

  // ---- what hetero_batch.cuh asks for ---------------------------------------------------------

  // Which candidates stay, and how many; false where the batch has ended.
  __device__ bool choose(u32 items, u32 hop, u64& edges) {
    enter();
    m.set(m.now().used, (u64)0);
    Dependent numbers(a.key0, a.key1, l.same_layers ? 0 : hop, a.batch0, a.batch1, l.batches, PURPOSE_CANDIDATES);
    bool well = read_rows(items, hop);
    if (well && all.n) {
      if (l.exact) well = bound_rows(hop, numbers);
      else if (l.rounds) well = importance(hop);
      else if (l.weighted) well = solve_by_weight(hop);
    }
    kept = m.take<u32>((u64)all.n / 32 + 1), ranks = m.take<u32>((u64)all.n / 32 + 1);
    Machine::Scan scan{0, 0};
    if (well && m.well()) well = m.scanned(scan, m.sum(keep(hop, numbers)));
    most_work = max(most_work, m.now().used);
    edges = scan.total, earlier = scan.before;
    return leave();
  }
  // How many stay of the warp's candidates.
  __device__ u32 keep(u32 hop, const Dependent& numbers) {
    u64* counters = this->counts(hop + 1);
    u32 lane = threadIdx.x & 31, own = 0, run = 0, of_run = ~0u;
    each([&](u32 i, u32 row, u32 relation, bool is) {
      bool stays = false;
      if (is && l.exact) {
        stays = chosen(i, row);
      } else if (is) {
        const HeteroRelation& r = a.relations[relation];
        double p = chance(i, row, relation, hop);
        stays = p >= 1 || uniform_of(numbers, (u64)((const I*)r.indices)[place(r, row, i)], r.src) <= p;
      }
      u32 word = __ballot_sync(~0u, stays), of = __shfl_sync(~0u, relation, 0);
      if (lane == 0) kept[i / 32] = word;
      own += __popc(word);
      // One addition for many candidates of one relation.
      if (__all_sync(~0u, !is || relation == of)) {
        if (of != of_run) {
          if (lane == 0 && run) atomicAdd(counters + of_run, (u64)run);
          run = 0, of_run = of;
        }
        run += __popc(word);
      } else if (stays) {
        atomicAdd(counters + relation, (u64)1);
      }
      if (!l.exact || !a.factors) return;
      u64 other = is && !stays ? keys[i] : NO_KEY;
      if (__match_any_sync(~0u, row) == ~0u) {
        other = ~warp_max(~other);
        if (lane == 0 && other != NO_KEY) atomicMin(last + row, other);
      } else if (other != NO_KEY) {
        atomicMin(last + row, other);
      }
    });
    if (lane == 0 && run) atomicAdd(counters + of_run, (u64)run);
    return own;
  }

  // Writes down the edges that stay, and claims their sources.
  __device__ void emit(u32, u32 hop) {
    u32 lane = threadIdx.x & 31, at = earlier;
    each([&](u32 i, u32 row, u32 relation, bool is) {
      u32 word = kept[i / 32];
      if (lane == 0) ranks[i / 32] = at;
      u64 e = at + __popc(word & ((1u << lane) - 1));
      at += __popc(word);
      if (!is || !(word >> lane & 1)) return;
      const HeteroRelation& r = a.relations[relation];
      u64 p = place(r, row, i), own = e - edge_at[relation];
      I v = ((const I*)r.indices)[p];
      *this->edge(relation, e) = v;
      write(a.out + this->edge_ids_at(relation), r.out_edge_bits, own, r.edge_id_bits ? read(r.edge_ids, r.edge_id_bits, p) : p);
      atomicMin(this->map_of(r.src) + (u64)v, (u64)a.tag << 32 | (this->base + e));
      if (a.factors) {
        // Given the others, an edge of a row that was chosen exactly is there by the smallest number that is not.
        double chance = l.exact ? 1.0 : this->chance(i, row, relation, hop);
        if (l.exact && load_relaxed(last + row) != NO_KEY) chance = at_most_one(__dmul_rn(weight(i), of_bits(load_relaxed(last + row))));
        put(a.out + this->factors_at(relation), own, __double2float_rn(op_div(l.scaled ? weight(i) : 1.0, chance)));
      }
    });
  }
  // How many stay before candidate i.
  __device__ u32 rank(u32 i) const {
    return i == all.n ? (u32)edge_at[a.num_relations] : ranks[i / 32] + __popc(kept[i / 32] & ((1u << (i & 31)) - 1));
  }
  // Where rows begin, once all edges are there.
  __device__ void after(u32 items, u32) {
    m.each(items, [&](u32 row) {
      u32 relation = relation_of(row);
      ((I*)(a.out + this->indptr_at(relation)))[row - row_at[relation]] = (I)(rank(all.begins[row]) - edge_at[relation]);
    });
    if (!a.factors || !l.scaled) return;
    m.each_warp(items, [&](u32 row) {
      u32 relation = relation_of(row), lo = rank(all.begins[row]), hi = rank(all.begins[row + 1]);
      float* own = (float*)(a.out + this->factors_at(relation)) - edge_at[relation];
      double sum = warp_sum_of(lo, hi, [&](u32 e) { return (double)own[e]; });
      for (u32 e = lo + (threadIdx.x & 31); e < hi; e += 32)
        own[e] = __double2float_rn(op_div(__dmul_rn((double)own[e], (double)(hi - lo)), sum));
    });
  }
};

template <typename I>
__device__ __forceinline__ void labor(const LaborArgs& a) {
  extern __shared__ u64 tables[];
  __shared__ HeteroShared s;
  Labor<I>(a, s, tables).run();
}
