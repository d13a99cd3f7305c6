#include "variants.h"

#include <cstring>

#if defined(_MSC_VER) && defined(_M_X64)
#include <intrin.h>
#endif
#if defined(__linux__) && defined(__aarch64__)
#include <sys/auxv.h>
#endif
#if defined(__APPLE__) && defined(__aarch64__)
#include <sys/sysctl.h>
#endif

// The build defines LAYBY_HAS_<variant> for each variant that it compiled.
#define LAYBY_DECLARE(variant) \
  namespace layby {            \
  namespace variant {          \
  extern const KernelTable TABLE; \
  }                            \
  }
#if defined(LAYBY_HAS_avx512vnni)
LAYBY_DECLARE(avx512vnni)
#endif
#if defined(LAYBY_HAS_avx2vnni)
LAYBY_DECLARE(avx2vnni)
#endif
#if defined(LAYBY_HAS_avx2)
LAYBY_DECLARE(avx2)
#endif
#if defined(LAYBY_HAS_i8mm)
LAYBY_DECLARE(i8mm)
#endif
#if defined(LAYBY_HAS_dotprod)
LAYBY_DECLARE(dotprod)
#endif
LAYBY_DECLARE(portable)

namespace layby {
namespace {

bool always() { return true; }

#if defined(__x86_64__) && defined(__GNUC__)

// Every CPU with AVX2 has F16C, which compilers did not always know by name.
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool has_avx512vnni() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vnni");
}
// The compiler's list of features may be too old to know AVX-VNNI: leaf 7, sub-leaf 1, bit 4 of eax.
bool has_avxvnni() {
  uint32_t a = 7, b = 0, c = 1, d = 0;
  __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  return has_avx2() && (a >> 4 & 1);
}

#elif defined(_M_X64)

// Whether the system keeps the registers (xgetbv) and the CPU has the instructions.
bool has(int leaf, int sub, int reg, int bit) {
  int regs[4];
  __cpuidex(regs, leaf, sub);
  return regs[reg] >> bit & 1;
}
bool keeps(uint64_t state) { return has(1, 0, 2, 27) && (_xgetbv(0) & state) == state; }
bool has_avx2() { return keeps(0x6) && has(7, 0, 1, 5) && has(1, 0, 2, 12) && has(1, 0, 2, 29); }
bool has_avx512vnni() {
  return has_avx2() && keeps(0xe6) && has(7, 0, 1, 16) && has(7, 0, 1, 17) && has(7, 0, 1, 30) &&
         has(7, 0, 1, 31) && has(7, 0, 2, 11);
}
bool has_avxvnni() { return has_avx2() && has(7, 1, 0, 4); }

#elif defined(__aarch64__) && defined(__linux__)

bool has_dotprod() { return getauxval(AT_HWCAP) >> 20 & 1; }                   // HWCAP_ASIMDDP
bool has_i8mm() { return has_dotprod() && (getauxval(AT_HWCAP2) >> 13 & 1); }  // HWCAP2_I8MM

#elif defined(__aarch64__) && defined(__APPLE__)

bool has(const char* feature) {
  int is_there = 0;
  size_t size = sizeof is_there;
  return sysctlbyname(feature, &is_there, &size, nullptr, 0) == 0 && is_there;
}
bool has_dotprod() { return has("hw.optional.arm.FEAT_DotProd"); }
bool has_i8mm() { return has_dotprod() && has("hw.optional.arm.FEAT_I8MM"); }

#endif

struct Variant {
  const KernelTable* kernels;
  bool (*runs_here)();
};

const Variant VARIANTS[] = {
#if defined(LAYBY_HAS_avx512vnni)
    {&avx512vnni::TABLE, has_avx512vnni},
#endif
#if defined(LAYBY_HAS_avx2vnni)
    {&avx2vnni::TABLE, has_avxvnni},
#endif
#if defined(LAYBY_HAS_avx2)
    {&avx2::TABLE, has_avx2},
#endif
#if defined(LAYBY_HAS_i8mm)
    {&i8mm::TABLE, has_i8mm},
#endif
#if defined(LAYBY_HAS_dotprod)
    {&dotprod::TABLE, has_dotprod},
#endif
    {&portable::TABLE, always},
};
constexpr int COUNT = sizeof(VARIANTS) / sizeof(VARIANTS[0]);

}  // namespace

const KernelTable* variant_at(int index) { return index >= 0 && index < COUNT ? VARIANTS[index].kernels : nullptr; }

const KernelTable* variant_named(const char* name) {
  for (const Variant& variant : VARIANTS)
    if (!std::strcmp(variant.kernels->name, name)) return variant.kernels;
  return nullptr;
}

bool runs_here(const KernelTable& kernels) {
  for (const Variant& variant : VARIANTS)
    if (variant.kernels == &kernels) return variant.runs_here();
  return false;
}

}  // namespace layby
