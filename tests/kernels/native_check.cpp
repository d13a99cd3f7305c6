// Checks the variants of one build against its portable one, for machines that the Python tests cannot run on.
//
// A two-layer model with every op is run for each storage: near the portable variant's logits (which the Python tests
// hold to the reference), and the same bits for chunks, neighbours, single steps and teams of one and two threads.
// Prints a line for each failure; the exit status is their number.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "layby_cpu.h"

namespace {

constexpr int HIDDEN = 256, FFN = 256, HEADS = 6, KV_HEADS = 3, HEAD_DIM = 64, VOCABULARY = 50, LAYERS = 2;
constexpr int ROWS = 300, PAGES = 10 + ROWS, PAGE = 32;
constexpr int COUNTS[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 64, 300};  // of rows in a step
constexpr int SHORT = 21;  // tokens of a sequence; a long one, of ROWS, crosses a piece of attention

// How keys and values are stored, and the bytes of a layer's keys in a page; its values take as many.
struct KvKind {
  const char* name;
  int number, key_bytes;
};
const KvKind F16 = {"f16", LAYBY_KV_F16, KV_HEADS * HEAD_DIM * PAGE * 2};
const KvKind F32 = {"f32", LAYBY_KV_F32, KV_HEADS * HEAD_DIM * PAGE * 4};
const KvKind Q8_0 = {"q8_0", LAYBY_KV_Q8_0, KV_HEADS * (HEAD_DIM + HEAD_DIM / 32 * 2) * PAGE};

int failures = 0;

void require(bool holds, const std::string& what) {
  if (holds) return;
  ++failures;
  std::printf("FAILED %s: %s\n", what.c_str(), layby_error());
}

// A storage, its block, and where its half-precision scales lie.
struct Storage {
  const char* name;
  int values, bytes;
  std::vector<int> scales;
};
const std::vector<Storage> STORAGES = {
    {"F32", 1, 4, {}},        {"F16", 1, 2, {0}},       {"BF16", 1, 2, {}},        {"Q4_0", 32, 18, {0}},
    {"Q4_1", 32, 20, {0, 2}}, {"Q5_0", 32, 22, {0}},    {"Q5_1", 32, 24, {0, 2}},  {"Q8_0", 32, 34, {0}},
    {"Q2_K", 256, 84, {80, 82}}, {"Q3_K", 256, 110, {108}}, {"Q4_K", 256, 144, {0, 2}}, {"Q5_K", 256, 176, {0, 2}},
    {"Q6_K", 256, 210, {208}}, {"IQ4_NL", 32, 18, {0}}, {"IQ4_XS", 256, 136, {0}}, {"MXFP4", 32, 17, {}},
};

std::mt19937 dice(7);

// Random codes, and scales around 2^-9 (times the small scales and codes of super-blocks: values well below 1).
std::vector<uint8_t> random_tensor(const Storage& storage, int outputs, int inputs) {
  std::vector<uint8_t> raw(static_cast<size_t>(outputs) * inputs / storage.values * storage.bytes);
  for (uint8_t& byte : raw) byte = static_cast<uint8_t>(dice());
  for (size_t at = 0; at < raw.size(); at += storage.bytes) {
    if (!std::strcmp(storage.name, "F32") || !std::strcmp(storage.name, "BF16")) {
      const float value = std::normal_distribution<float>(0, 0.06f)(dice);
      uint32_t bits;
      std::memcpy(&bits, &value, 4);
      std::memcpy(&raw[at], reinterpret_cast<uint8_t*>(&bits) + 4 - storage.bytes, storage.bytes);
    }
    for (const int scale : storage.scales) {
      const int exponent = storage.values == 256 ? 2 : storage.values == 32 ? 7 : 10;
      const uint16_t half = static_cast<uint16_t>(exponent << 10 | (dice() & 0x3ff));
      std::memcpy(&raw[at + scale], &half, 2);
    }
    if (!std::strcmp(storage.name, "MXFP4")) raw[at] = static_cast<uint8_t>(120 + dice() % 3);
  }
  return raw;
}

struct Model {
  std::vector<LaybyWeight*> weights;
  std::vector<float> norm = std::vector<float>(HIDDEN), head_norm = std::vector<float>(HEAD_DIM);
  std::vector<float> bias = std::vector<float>(HEADS * HEAD_DIM);  // as long as the longest that has one
  LaybyTeam* team = layby_team_new(1);
  const Storage& storage;

  explicit Model(const Storage& given) : storage(given) {
    for (auto* vector : {&norm, &head_norm, &bias})
      for (float& x : *vector) x = 0.5f + static_cast<float>(dice() % 1000) / 1000;
    const Storage& table = STORAGES[0];
    add(table, VOCABULARY, HIDDEN);
    for (int layer = 0; layer < LAYERS; ++layer) {
      add(storage, HEADS * HEAD_DIM, HIDDEN);
      add(storage, KV_HEADS * HEAD_DIM, HIDDEN);
      add(storage, KV_HEADS * HEAD_DIM, HIDDEN);
      add(storage.values == 256 ? STORAGES[7] : storage, HIDDEN, HEADS * HEAD_DIM);
      add(storage, FFN, HIDDEN);
      add(storage, FFN, HIDDEN);
      add(storage, HIDDEN, FFN);
    }
  }
  ~Model() {
    for (LaybyWeight* weight : weights) layby_weight_free(weight);
    layby_team_free(team);
  }
  void add(const Storage& storage, int outputs, int inputs) {
    const auto raw = random_tensor(storage, outputs, inputs);
    weights.push_back(layby_weight_new(storage.name, raw.data(), outputs, inputs, team));
    require(weights.back(), std::string("pack ") + storage.name);
  }
};

std::vector<int32_t> counting(int begin, int end, int step = 1) {
  std::vector<int32_t> numbers;
  for (int i = begin; i != end; i += step) numbers.push_back(i);
  return numbers;
}

class Runner {
 public:
  Runner(const Model& model, const char* variant, int threads, const KvKind& kind)
      : variant_(variant), team_(layby_team_new(threads)), program_(layby_program_new(variant, ROWS, ROWS)),
        pool_(static_cast<size_t>(PAGES) * LAYERS * 2 * kind.key_bytes, 0xff) {
    require(program_, std::string("program for ") + variant);
    const int keys = kind.key_bytes;
    layby_program_set_pool(program_, pool_.data(), LAYERS * 2 * keys, PAGES, kind.number);
    for (int layer = 0; layer < LAYERS; ++layer) {
      const LaybyKvLayer kv = {2 * layer * keys, (2 * layer + 1) * keys, KV_HEADS, HEAD_DIM, HEAD_DIM};
      layby_program_add_kv_layer(program_, &kv);
    }
    record(model);
  }
  ~Runner() {
    layby_program_free(program_);
    layby_team_free(team_);
  }

  // Logits of all rows, [rows][VOCABULARY].
  std::vector<float> run(const std::vector<int32_t>& tokens, const std::vector<int32_t>& positions,
                         const std::vector<int32_t>& sequences, const std::vector<int32_t>& tables, int stride) {
    std::vector<int32_t> outputs(tokens.size());
    for (size_t r = 0; r < outputs.size(); ++r) outputs[r] = static_cast<int32_t>(r);
    const int32_t n = static_cast<int32_t>(tokens.size()), count = static_cast<int32_t>(tables.size()) / stride;
    std::vector<LaybyWish> wanted(tokens.size());
    for (size_t r = 0; r < wanted.size(); ++r)
      wanted[r] = {static_cast<int32_t>(r * 7 % (VOCABULARY + 3)), 1, VOCABULARY, 1.0, r % 2 ? 1.0 : 0.9, 0.01, r, r};
    const LaybyStep step = {n, n, count, stride, tokens.data(), positions.data(), sequences.data(), tables.data(),
                            outputs.data(), wanted.data()};
    require(layby_program_run(program_, team_, &step) == 0, "run");
    int64_t pitch = 0;
    const float* rows = layby_program_rows(program_, logits_, &pitch);
    std::vector<float> result;
    for (int32_t r = 0; r < n; ++r) {
      result.insert(result.end(), rows + r * pitch, rows + r * pitch + VOCABULARY);
      check_likeliest(rows + r * pitch, r, wanted[r]);
    }
    return result;
  }

  // A sequence in chunks of this size.
  std::vector<float> prefill(const std::vector<int32_t>& tokens, const std::vector<int32_t>& table, int chunk) {
    std::vector<float> result;
    for (size_t at = 0; at < tokens.size(); at += chunk) {
      const size_t end = std::min(tokens.size(), at + chunk);
      std::vector<int32_t> positions;
      for (size_t p = at; p < end; ++p) positions.push_back(static_cast<int32_t>(p));
      const std::vector<int32_t> part(tokens.begin() + at, tokens.begin() + end);
      const auto rows = run(part, positions, std::vector<int32_t>(part.size(), 0), table, static_cast<int>(table.size()));
      result.insert(result.end(), rows.begin(), rows.end());
    }
    return result;
  }

 private:
  int rows(int width, int extent = LAYBY_TOKENS) {
    return layby_program_add_buffer(program_, LAYBY_ROWS, width, extent);
  }
  int operand(const Storage& storage, int width, int extent = LAYBY_TOKENS) {
    return layby_program_add_buffer(program_, layby_operand_kind(variant_, storage.name), width, extent);
  }

  // By a sort of the whole row.
  void check_likeliest(const float* row, int32_t r, const LaybyWish& wish) {
    auto ids = counting(0, VOCABULARY);
    std::stable_sort(ids.begin(), ids.end(), [row](int32_t a, int32_t b) { return row[a] > row[b]; });
    ids.resize(std::min(wish.count, VOCABULARY));
    const size_t at = static_cast<size_t>(r) * LAYBY_MOST_LIKELIEST;
    bool holds = counts_[r] == static_cast<int32_t>(ids.size());
    for (size_t i = 0; holds && i < ids.size(); ++i) {
      const size_t place = at + static_cast<size_t>(ranking_[at + i]);
      holds = ids_[place] == ids[i] && values_[place] == row[ids[i]] && (!i || ids_[at + i - 1] < ids_[at + i]);
    }
    require(holds, std::string(variant_) + ": the likeliest of a row");
    const auto drawn = std::find(ids.begin(), ids.end(), drawn_[r]);
    require(ids.empty() ? drawn_[r] == -1 : drawn != ids.end(), std::string(variant_) + ": a token drawn from them");
  }

  void record(const Model& m) {
    std::vector<float> frequencies(HEAD_DIM / 2);
    for (int i = 0; i < HEAD_DIM / 2; ++i) frequencies[i] = std::pow(1e4f, -2.0f * i / HEAD_DIM);
    const int rotary = layby_program_add_rotary(program_, frequencies.data(), HEAD_DIM / 2, 1.0f);
    const int x = rows(HIDDEN), q = rows(HEADS * HEAD_DIM), k = rows(KV_HEADS * HEAD_DIM), v = rows(KV_HEADS * HEAD_DIM);
    const int in = operand(m.storage, HIDDEN), attended = operand(m.storage, HEADS * HEAD_DIM);
    const int gated = operand(m.storage, FFN), gate = rows(FFN), up = rows(FFN), plain = rows(FFN);
    layby_program_add_embedding(program_, m.weights[0], 1.0f, x);
    for (int layer = 0; layer < LAYERS; ++layer) {
      LaybyWeight* const* w = &m.weights[1 + layer * 7];
      const LaybyInput input = {x, in, 0, 1e-5f, m.norm.data()};
      const LaybyLinear qkv[] = {{w[0], m.bias.data(), LAYBY_NONE, q}, {w[1], nullptr, LAYBY_NONE, k},
                                 {w[2], nullptr, LAYBY_NONE, v}};
      require(layby_program_add_linear(program_, &input, qkv, 3) == 0, "qkv");
      const LaybyHeads heads[] = {
          {q, q, HEADS, HEAD_DIM, m.head_norm.data(), 1e-5f, rotary, LAYBY_TO_ROWS, LAYBY_NONE},
          {k, LAYBY_NONE, KV_HEADS, HEAD_DIM, nullptr, 0, rotary, LAYBY_TO_KEYS, layer},
          {v, LAYBY_NONE, KV_HEADS, HEAD_DIM, nullptr, 0, LAYBY_NONE, LAYBY_TO_VALUES, layer}};
      require(layby_program_add_heads(program_, heads, 3) == 0, "heads");
      const LaybyAttention attention = {q, attended, HEADS, layer, 0.125f, layer ? 100 : 0};
      require(layby_program_add_attention(program_, &attention) == 0, "attention");
      const LaybyInput given = {attended, LAYBY_NONE, 0, 0, nullptr};
      const LaybyLinear o = {w[3], nullptr, x, x};
      require(layby_program_add_linear(program_, &given, &o, 1) == 0, "o");
      const LaybyLinear gate_up[] = {{w[4], m.bias.data(), LAYBY_NONE, LAYBY_NONE}, {w[5], nullptr, LAYBY_NONE, LAYBY_NONE}};
      if (layer == 0) {  // fused, then the same in single ops
        require(layby_program_add_gated_linear(program_, &input, gate_up, 0, gated) == 0, "gated linear");
        const LaybyInput down_in = {gated, LAYBY_NONE, 0, 0, nullptr};
        const LaybyLinear down = {w[6], nullptr, x, x};
        require(layby_program_add_linear(program_, &down_in, &down, 1) == 0, "down");
        continue;
      }
      const LaybyLinear halves[] = {{w[4], nullptr, LAYBY_NONE, gate}, {w[5], nullptr, LAYBY_NONE, up}};
      require(layby_program_add_linear(program_, &input, halves, 2) == 0, "halves");
      require(layby_program_add_gated(program_, gate, up, 1, plain) == 0, "gated");
      const int down_operand = operand(m.storage, FFN);
      const LaybyInput down_in = {plain, down_operand, 0, 0, nullptr};
      const LaybyLinear down = {w[6], nullptr, x, x};
      require(layby_program_add_linear(program_, &down_in, &down, 1) == 0, "down");
    }
    const int normed = rows(HIDDEN), taken = rows(HIDDEN, LAYBY_OUTPUTS);
    require(layby_program_add_norm(program_, x, normed, m.norm.data(), 1e-5f, HIDDEN) == 0, "norm");
    require(layby_program_add_take(program_, normed, taken) == 0, "take");
    logits_ = rows(VOCABULARY, LAYBY_OUTPUTS);
    const LaybyInput head_in = {taken, operand(STORAGES[0], HIDDEN, LAYBY_OUTPUTS), 0, 0, nullptr};
    const LaybyLinear head = {m.weights[0], nullptr, LAYBY_NONE, logits_};
    require(layby_program_add_linear(program_, &head_in, &head, 1) == 0, "head");
    const LaybyFound found = {counts_.data(), drawn_.data(), ids_.data(), values_.data(), ranking_.data()};
    require(layby_program_add_likeliest(program_, logits_, &found) == 0, "likeliest");
  }

  const char* variant_;
  LaybyTeam* team_;
  LaybyProgram* program_;
  std::vector<uint8_t> pool_;
  std::vector<int32_t> counts_ = std::vector<int32_t>(ROWS), drawn_ = counts_;
  std::vector<int32_t> ids_ = std::vector<int32_t>(ROWS * LAYBY_MOST_LIKELIEST), ranking_ = ids_;
  std::vector<double> values_ = std::vector<double>(ROWS * LAYBY_MOST_LIKELIEST);
  int logits_ = 0;
};

// Random weights amplify rounding; a wrong op gives more than half.
void check_near(const std::vector<float>& got, const std::vector<float>& expected, const std::string& what) {
  double off = 0, size = 0;
  bool finite = true;
  for (size_t i = 0; i < expected.size(); ++i) {
    off += (got[i] - expected[i]) * (got[i] - expected[i]);
    size += expected[i] * expected[i];
    finite = finite && std::isfinite(got[i]) && std::isfinite(expected[i]);
  }
  require(finite && size > 0 && std::sqrt(off / size) < 0.02, what + " is far from the portable variant");
}

// Where a row is looked at: the last place; in the whole check every one, of many rows some.
std::vector<int> places(int count, bool is_quick) {
  if (is_quick) return count < 16 ? std::vector<int>{count - 1} : std::vector<int>{};
  return count < 64 ? counting(0, count) : std::vector<int>{0, 1, count / 2, count - 1};
}

// The logits of a sequence's last token, whose pages are 9 to 0, at a place among sequences that begin.
std::vector<float> beside_others(Runner& runner, const std::vector<int32_t>& tokens, int count, int place) {
  std::vector<int32_t> some, positions, tables;
  for (int s = 0; s < count; ++s) {
    some.push_back(s == place ? tokens.back() : tokens[s % tokens.size()]);
    positions.push_back(s == place ? static_cast<int32_t>(tokens.size()) - 1 : 0);
    for (int p = 0; p < 10; ++p) tables.push_back(s == place ? 9 - p : 10 + s);
  }
  const auto rows = runner.run(some, positions, counting(0, count), tables, 10);
  return {rows.begin() + place * VOCABULARY, rows.begin() + (place + 1) * VOCABULARY};
}

using Variants = std::vector<const char*>;

void check(const Storage& storage, const Variants& variants, int length, const KvKind& kind, bool is_quick) {
  const Model model(storage);
  std::vector<int32_t> tokens;
  for (int i = 0; i < length; ++i) tokens.push_back(static_cast<int32_t>(dice() % VOCABULARY));
  const auto table = counting(0, 10);
  const auto expected = Runner(model, "portable", 2, kind).prefill(tokens, table, length);
  for (const char* variant : variants) {
    const std::string name = std::string(variant) + " " + storage.name + ", " + kind.name + " pool";
    const auto whole = Runner(model, variant, 1, kind).prefill(tokens, table, length);
    check_near(whole, expected, name);
    Runner second(model, variant, 2, kind);
    const int chunk = length / 3 + 1;
    require(second.prefill(tokens, counting(9, -1, -1), chunk) == whole, name + ": other chunks, pages and threads");
    const std::vector<float> last(whole.end() - VOCABULARY, whole.end());
    for (const int count : COUNTS)
      for (const int place : places(count, is_quick))
        require(beside_others(second, tokens, count, place) == last,
                name + ": at " + std::to_string(place) + " of " + std::to_string(count));
  }
}

}  // namespace

// Usage: check quick|full VARIANT...
// Quick: only a few storages, one for each kind of product; and variants have their attention from the same source, so
// that a long sequence in halves is computed by the first of them alone.
int main(int count, char** arguments) {
  const bool is_quick = count > 1 && !std::strcmp(arguments[1], "quick");
  Variants variants;
  for (int i = 2; i < count; ++i)
    if (layby_variant_runs_here(arguments[i])) variants.push_back(arguments[i]);
  if (variants.empty()) return 0;
  for (const Storage& storage : STORAGES) {
    const bool is_chosen = !std::strcmp(storage.name, "BF16") || !std::strcmp(storage.name, "Q8_0") ||
                           !std::strcmp(storage.name, "Q6_K");
    if (!is_quick || is_chosen) check(storage, variants, SHORT, F16, is_quick);
  }
  check(STORAGES[4], is_quick ? Variants{variants[0]} : variants, ROWS, F16, is_quick);
  check(STORAGES[4], variants, ROWS, Q8_0, is_quick);
  if (!is_quick) check(STORAGES[4], variants, ROWS, F32, is_quick);
  for (const char* variant : variants) std::printf("checked %s\n", variant);
  return failures;
}
