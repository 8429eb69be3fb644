#!/usr/bin/env bash
# Tests and figures of a machine with an NVIDIA GPU, with a wheel that was built elsewhere: no
# network and no Go.
#
#   tools/gpu_check.sh FOLDER [WHEEL]
#
# FOLDER gets tests.xml, tests.txt, golden.txt, kernels.txt, sanitizer-*.txt, soak/ and benchmarks/ with JSON and pictures,
# summary.txt.
# WHEEL is the newest in dist/ when not given. The interpreter must have pytest, NumPy and a torch with
# CUDA; CuPy and JAX add tests, and CuPy the roofline. Status 0 only where all of it passed.
#
#   PYTHON=python3   the interpreter
#   BUDGET=600       seconds for the benchmarks; 0 for none
#   PARTS=           parts of the benchmarks; all when empty
#   TESTS=           arguments for pytest; all tests of a GPU when empty
#   SANITIZE=1       0 for no compute-sanitizer
#   SOAK=200000      batches of the soak; 0 for none
#   FUZZ=20000       random calls of the API with graphs on the GPU; 0 for none
#   COMMIT=          kept in the JSON where there is no git to ask
set -uo pipefail

usage() { sed -n '5,19p' "$0" | cut -c3- >&2; exit 2; }
fail() { echo "gpu_check: $*" >&2; exit 1; }

[ $# -ge 1 ] && [ $# -le 2 ] && [ -n "$1" ] || usage
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
python=${PYTHON:-python3}
executable=$("$python" -c 'import sys; print(sys.executable)') || fail "expected an interpreter, got PYTHON=$python"
wheel=${2:-}
if [ -z "$wheel" ]; then
  wheel=$(find "$root/dist" -name "pygsampler-*_$(uname -m).whl" -printf '%T@ %p\n' 2>/dev/null | sort -n | tail -1 | cut -d' ' -f2-)
  [ -n "$wheel" ] || fail "expected a wheel for $(uname -m) in $root/dist, found none: make wheel builds one"
fi
[ -f "$wheel" ] || fail "expected a wheel, found no file $wheel"
wheel=$(realpath "$wheel")
for module in pytest numpy torch; do
  "$python" -c "import $module" 2>/dev/null || fail "expected $module for $executable, found none"
done
mkdir -p "$1" && out=$(cd "$1" && pwd) || fail "expected a folder for the results, got $1"
rm -f "$out"/{summary.txt,golden.txt,kernels.txt,tests.txt,tests.xml,fuzz.txt,soak.txt} "$out"/sanitizer-*.txt

# A wheel is an archive that imports from where it is unpacked; the interpreter's packages stay in sight.
packages=$(mktemp -d) || exit 1
trap 'rm -rf "$packages"' EXIT
"$python" -m zipfile -e "$wheel" "$packages" || fail "expected a wheel, got $wheel"
export PYTHONPATH=$packages PYTHONDONTWRITEBYTECODE=1 PYGSAMPLER_REQUIRE=cuda
cd "$root" || exit 1
"$python" - "$packages" <<'CODE' || fail "expected a wheel that imports and sees a GPU, see above"
import sys
import pygsampler as pgs
assert pgs.__file__.startswith(sys.argv[1]), f"expected the wheel's package, got {pgs.__file__}"
assert pgs.cuda.device_count() > 0, "expected a CUDA device, found none"
print(f"pygsampler {pgs.__version__}, {pgs.cuda.device_name(0)}, CUDA {pgs.cuda.driver_version()}")
CODE
commit=${COMMIT:-$(git rev-parse HEAD 2>/dev/null)}
failed=()
say() { echo "$*" | tee -a "$out/summary.txt"; }

# pyproject.toml and the conftest of tests/ want plugins that such a machine may not have; without that
# conftest no test runs on the emulator. Tests of a GPU are in tests/cuda, and in files that name the
# backends of some of their tests. Warnings of
# its torch or CuPy are no fault of ours; what went wrong in a destructor or a thread is. A run that is cut
# short has named each test that failed.
pytest=("$python" -m pytest -c /dev/null --rootdir "$root" --confcutdir "$root/tests/cuda"
  --import-mode=importlib -p no:cacheprovider -p tests.support.backends -m gpu -W error::pytest.PytestUnraisableExceptionWarning
  -W error::pytest.PytestUnhandledThreadExceptionWarning -rs --tb=short -v)

echo "== tests"
begin=$SECONDS
read -ra chosen <<<"${TESTS:-tests/cuda $(grep -rl --include='test_*.py' '^@pytest.mark.backends' tests |
  grep -v '^tests/cuda/' | sort | tr '\n' ' ')}"
"${pytest[@]}" --durations=10 --junitxml="$out/tests.xml" "${chosen[@]}" 2>&1 | tee "$out/tests.txt"
[ "${PIPESTATUS[0]}" = 0 ] || failed+=(tests)
say "tests: $(tail -1 "$out/tests.txt") ($((SECONDS - begin)) s)"

begin=$SECONDS
"$python" tests/golden --check --device cuda >"$out/golden.txt" 2>&1
status=$?
[ "$status" = 0 ] || failed+=(golden)
say "golden: status $status, $(tail -1 "$out/golden.txt") ($((SECONDS - begin)) s)"

# All kernels, checked and noted: the profiler that notes them goes with no sanitizer.
begin=$SECONDS
"$python" tools/gpu_check_small.py --kernels >"$out/kernels.txt" 2>&1
status=$?
[ "$status" = 0 ] || failed+=(kernels)
say "kernels: status $status, $(tail -1 "$out/kernels.txt") ($((SECONDS - begin)) s)"

# The sanitizer slows kernels down a hundredfold: one small program that runs every kernel.
sanitizer=$(command -v compute-sanitizer || find /usr/local/cuda*/bin /usr/local/cuda*/compute-sanitizer \
  -name compute-sanitizer -type f -perm -u+x 2>/dev/null | head -1)
if [ "${SANITIZE:-1}" = 0 ]; then
  say "sanitizer: not asked for"
elif [ -z "$sanitizer" ]; then
  say "sanitizer: not run, compute-sanitizer is not installed"
else
  for tool in memcheck racecheck synccheck; do
    begin=$SECONDS
    # Refusals of the driver that the program expects (a question that older drivers lack) are no errors.
    options=(); [ "$tool" = memcheck ] && options=(--report-api-errors no)
    # A generated program meets in one function that the compiler calls from two places, one of them for
    # warps that have diverged: synccheck reports threads of a block at different barriers.
    without=(); [ "$tool" = synccheck ] && without=(programs)
    timeout 600 "$sanitizer" --tool "$tool" "${options[@]}" --error-exitcode 9 --print-limit 20 \
      "$python" tools/gpu_check_small.py ${without[@]+--skip "${without[@]}"} >"$out/sanitizer-$tool.txt" 2>&1
    status=$?
    [ "$status" = 0 ] || failed+=("$tool")
    last=$(grep -E 'ERROR SUMMARY|RACECHECK SUMMARY' "$out/sanitizer-$tool.txt" | tail -1)
    say "$tool${without[*]+ (without ${without[*]})}: status $status, ${last#=* } ($((SECONDS - begin)) s)"
  done
fi

if [ "${FUZZ:-20000}" = 0 ]; then
  say "fuzzing: not asked for"
else
  begin=$SECONDS
  "$python" -m tests.fuzz --quiet --calls "${FUZZ:-20000}" --seed 1 --device cuda 2>&1 | tee "$out/fuzz.txt"
  status=${PIPESTATUS[0]}
  [ "$status" = 0 ] || failed+=(fuzzing)
  say "fuzzing: status $status, $(head -1 "$out/fuzz.txt") ($((SECONDS - begin)) s)"
fi

if [ "${SOAK:-200000}" = 0 ]; then
  say "soak: not asked for"
else
  begin=$SECONDS
  "$python" tools/soak.py --device cuda --batches "${SOAK:-200000}" --quiet --out "$out/soak" \
    ${commit:+--commit "$commit"} 2>&1 | tee "$out/soak.txt"
  status=${PIPESTATUS[0]}
  [ "$status" = 0 ] || failed+=(soak)
  say "soak: status $status, $(grep -m1 batches "$out/soak.txt") ($((SECONDS - begin)) s)"
fi

budget=${BUDGET:-600}
if [ "$budget" = 0 ]; then
  say "benchmarks: not asked for"
else
  begin=$SECONDS
  read -ra parts <<<"${PARTS:-}"
  "$python" -m benchmarks.gpu ${parts[@]+"${parts[@]}"} --budget "$budget" --out "$out/benchmarks" \
    ${commit:+--commit "$commit"} 2>&1 | tee "$out/benchmarks.txt"
  status=${PIPESTATUS[0]}
  [ "$status" = 0 ] || failed+=(benchmarks)
  say "benchmarks: status $status ($((SECONDS - begin)) s)"
  "$python" -m benchmarks.gpu.summary "$out/benchmarks" | tee -a "$out/summary.txt"
fi

if [ ${#failed[@]} -gt 0 ]; then
  say "FAILED: ${failed[*]}"
  exit 1
fi
say "all passed"
