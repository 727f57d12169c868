// Google Benchmark's own memcpy benchmark, with operands that are hot or flushed, to be measured
// beside ours (google.rs). Memory is as ours: aligned, in huge pages where there are some.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include <immintrin.h>
#include <sys/mman.h>

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kLine = 64;

struct Free {
  void operator()(char* p) const { std::free(p); }
};
using Buffer = std::unique_ptr<char, Free>;

Buffer Make(std::size_t bytes) {
  const std::size_t whole = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  Buffer buffer(static_cast<char*>(std::aligned_alloc(kHugePage, whole)));
  if (!buffer) std::abort();
  madvise(buffer.get(), whole, MADV_HUGEPAGE);
  std::memset(buffer.get(), 'x', whole);
  return buffer;
}

void Flush(const char* p, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kLine) _mm_clflush(p + at);
  _mm_mfence();
}

void Hot(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const Buffer src = Make(bytes), dst = Make(bytes);
  for (auto _ : state) {
    std::memcpy(dst.get(), src.get(), bytes);
    benchmark::DoNotOptimize(dst.get());
    benchmark::ClobberMemory();
  }
}

void Cold(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const Buffer src = Make(bytes), dst = Make(bytes);
  for (auto _ : state) {
    state.PauseTiming();
    Flush(src.get(), bytes);
    Flush(dst.get(), bytes);
    state.ResumeTiming();
    std::memcpy(dst.get(), src.get(), bytes);
    benchmark::DoNotOptimize(dst.get());
    benchmark::ClobberMemory();
  }
}

BENCHMARK(Hot)->Arg(4096);
BENCHMARK(Cold)->Arg(1 << 20);

}  // namespace

BENCHMARK_MAIN();
