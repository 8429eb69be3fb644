#pragma once
#include <stdint.h>

// Loops over many elements. Vectors have at most so many bits as the widest; the results do not depend on it.

// The places, from base on, of those of n ids (of 32 or 64 bits) whose bit is set among so many bits, and the ids
// themselves where they are asked for. Both have room for n. Gives how many they are; -1: an id is none of the bits'.
int64_t pgs_sift(const void *ids, int bits, int64_t n, const uint64_t *members, int64_t size, int64_t base, int64_t *places, void *kept, int widest);

// The draws of n states, and their places from base on, but for those that are too late for a weight and a bound. Both have
// room for n. Gives how many they are.
int64_t pgs_race(const uint64_t *states, const double *weights, int64_t n, double bound, int64_t base, uint64_t *draws, int64_t *places, int widest);

// Numbers n ids (of 32 or 64 bits) in their place, by a map of so many words, and appends the new ones to the nodes behind
// the first that have numbers: cpu.Claim. Nodes has room for one more than all. Gives how many have numbers then; -1: an id
// has no word.
int64_t pgs_claim(void *ids, int bits, int64_t n, uint32_t *words, int64_t size, uint32_t tag, uint32_t limit, void *nodes, int64_t numbered, int widest);

// Adds n values up by their rows, of so many, as pairs of integers. Rows come in the order of their numbers, and to, which has
// room for one more than all, has the sum of each that one value only had so far; of others it says where the sums of their
// integers stand, in parts, and slots says which row stands there. State is which row is next, and how many slots are taken.
// 0: there is no such row, or no slot left.
int pgs_gather_rows(const double *values, const void *rows, int bits, int64_t n, const double powers[4], double *to, int64_t size, int64_t *parts, int64_t *slots, int64_t room, int64_t state[2], int widest);

// Writes the sums of rows that slots are of.
void pgs_settle_rows(const int64_t *parts, const int64_t *slots, int64_t n, const double powers[4], double *to);

// The keys of n draws, for the weights at their places: run.raceKey of many.
void pgs_keys(const uint64_t *draws, const double *weights, const int64_t *places, int64_t n, uint64_t *keys, int widest);

// Replaces each of m numbers, which are below the last sum, by the first of n > 0 ascending sums
// above it.
void pgs_above(const uint64_t *sums, int64_t n, uint64_t *numbers, int64_t m, int widest);

// The bits of the largest size of n values.
uint64_t pgs_largest(const double *values, int64_t n, int widest);

// Sums of the two integers of each of n values, and the values of n pairs of sums.
void pgs_sums(const double *values, int64_t n, const double powers[3], int64_t sums[2], int widest);
void pgs_values(const int64_t *parts, int64_t n, const double powers[2], double *to, int widest);

// True if one of n numbers is not positive and finite.
int pgs_outside(const double *values, int64_t n, int widest);

// x op y of n elements each; to may be one of them.
enum { PGS_ADD, PGS_SUB, PGS_MUL, PGS_DIV, PGS_MIN, PGS_MAX, PGS_RELU, PGS_SQRT };
void pgs_map(int op, double *to, const double *x, const double *y, int64_t n, int widest);
