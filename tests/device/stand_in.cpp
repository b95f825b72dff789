// A device "standin" for tests: its memory and arithmetic are the CPU's, and like a GPU it refuses an operation whose tensors or
// generator lie on two devices.  A generator of it draws what a generator of the CPU draws from the same seed, so that a run
// here and a run on the CPU can be compared number by number.
//
// PyTorch's backend for other devices, PrivateUse1.  What has no kernel below comes to fall_back_to_cpu, which checks where the
// tensors lie, counts what would make a GPU's host wait, and computes on copies of the CPU.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torch/library.h>

#include <map>
#include <mutex>
#include <set>
#include <string>

namespace {

constexpr auto kType = c10::DeviceType::PrivateUse1;
const c10::Device kDevice(kType, 0);

bool has_float64 = true;  // some accelerators have none

// ---- what makes the host wait for a GPU, by name

std::mutex counts_lock;
std::map<std::string, int64_t> counts;
thread_local int depth = 0;  // > 0: inside the fallback, whose copies are its own

struct Inside {
  Inside() { ++depth; }
  ~Inside() { --depth; }
};

void count(const std::string& name) {
  if (depth > 0) return;
  std::lock_guard<std::mutex> guard(counts_lock);
  ++counts[name];
}

// The size of what they give depends on numbers that are on the GPU, or they look for errors there.
const std::set<std::string> kWaits = {
    "aten::nonzero", "aten::masked_select", "aten::equal", "aten::_unique2", "aten::unique_consecutive", "aten::unique_dim",
    "aten::bincount", "aten::repeat_interleave.Tensor", "aten::nonzero_static", "aten::histc"};

// ---- memory

struct Memory final : c10::Allocator {
  static void release(void* pointer) { c10::free_cpu(pointer); }
  c10::DataPtr allocate(size_t bytes) override {
    void* pointer = bytes == 0 ? nullptr : c10::alloc_cpu(bytes);
    return {pointer, pointer, &release, kDevice};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
};
Memory memory;
REGISTER_ALLOCATOR(kType, &memory);

void resize_bytes(const c10::Storage& storage, size_t bytes) {
  c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
  c10::DataPtr next = memory.allocate(bytes);
  if (impl->data() != nullptr && next.get() != nullptr) std::memcpy(next.get(), impl->data(), std::min(impl->nbytes(), bytes));
  impl->set_data_ptr_noswap(std::move(next));
  impl->set_nbytes(bytes);
}

// The memory of a tensor of the device, as a tensor of the CPU.
at::Tensor on_cpu(const at::Tensor& x) {
  if (!x.defined() || !x.is_privateuseone()) return x;
  char* start = static_cast<char*>(x.storage().mutable_data());
  if (start != nullptr) start += x.storage_offset() * x.element_size();
  at::Tensor out = at::from_blob(start, x.sizes(), x.strides(), x.options().device(at::kCPU));
  out._set_conj(x.is_conj());
  out._set_neg(x.is_neg());
  return out;
}

at::Tensor on_device(const at::Tensor& x) { return x.defined() ? x.to(kDevice) : x; }

// ---- generators: the CPU's numbers under the device's name

struct Generator final : c10::GeneratorImpl {
  at::Generator cpu;
  explicit Generator(at::Generator of_cpu)
      : c10::GeneratorImpl(kDevice, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)), cpu(std::move(of_cpu)) {}
  void set_current_seed(uint64_t seed) override { cpu.set_current_seed(seed); }
  void set_offset(uint64_t offset) override { cpu.set_offset(offset); }
  uint64_t get_offset() const override { return cpu.get_offset(); }
  uint64_t current_seed() const override { return cpu.current_seed(); }
  uint64_t seed() override { return const_cast<at::Generator&>(cpu).seed(); }
  void set_state(const c10::TensorImpl& state) override { cpu.unsafeGetGeneratorImpl()->set_state(state); }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override { return cpu.unsafeGetGeneratorImpl()->get_state(); }
  Generator* clone_impl() const override { return new Generator(cpu.clone()); }
};

const at::Generator& default_generator() {
  static const at::Generator made = at::make_generator<Generator>(at::detail::createCPUGenerator());
  return made;
}

// ---- what PyTorch asks of a device

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override { return default_generator(); }
  at::Generator getNewGenerator(c10::DeviceIndex) const override {
    return at::make_generator<Generator>(at::detail::createCPUGenerator());
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override { resize_bytes(storage, bytes); }
};

// One device, one stream, and nothing that is still to be done.
struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device) const override { return kDevice; }
  c10::Device getDevice() const override { return kDevice; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  c10::Stream getStream(c10::Device) const override { return c10::Stream(c10::Stream::DEFAULT, kDevice); }
  c10::Stream getDefaultStream(c10::Device) const override { return c10::Stream(c10::Stream::DEFAULT, kDevice); }
  c10::Stream exchangeStream(c10::Stream) const override { return c10::Stream(c10::Stream::DEFAULT, kDevice); }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
  void synchronizeDevice(const c10::DeviceIndex) const override {}
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}
  void record(void** event, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {
    static int happened = 0;
    *event = &happened;
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void synchronizeEvent(void*) const override {}
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

// ---- kernels: new tensors, views, copies, and what the fallback cannot do

c10::ScalarType check_type(std::optional<c10::ScalarType> asked) {
  const c10::ScalarType type = c10::dtype_or_default(asked);
  TORCH_CHECK_TYPE(has_float64 || (type != at::kDouble && type != at::kComplexDouble), "standin has no float64");
  return type;
}

at::Tensor empty(c10::SymIntArrayRef size, std::optional<c10::ScalarType> type, std::optional<c10::Layout>,
                 std::optional<c10::Device>, std::optional<bool>, std::optional<c10::MemoryFormat> format) {
  constexpr c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);
  return at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(size), &memory, keys, check_type(type), format);
}

at::Tensor empty_strided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride, std::optional<c10::ScalarType> type,
                         std::optional<c10::Layout>, std::optional<c10::Device>, std::optional<bool>) {
  constexpr c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);
  return at::detail::empty_strided_generic(C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), &memory, keys,
                                           check_type(type));
}

at::Tensor as_strided(const at::Tensor& x, c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                      std::optional<c10::SymInt> offset) {
  std::optional<int64_t> start;
  if (offset.has_value()) start = offset->expect_int();
  return at::native::as_strided_tensorimpl(x, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), start);
}

at::Tensor view(const at::Tensor& x, c10::SymIntArrayRef size) { return at::native::view(x, C10_AS_INTARRAYREF_SLOW(size)); }

at::Tensor reshape_alias(const at::Tensor& x, c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
  return at::native::_reshape_alias(x, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride));
}

const at::Tensor& resize(const at::Tensor& x, c10::SymIntArrayRef size, std::optional<c10::MemoryFormat>) {
  at::native::resize_impl_cpu_(x.unsafeGetTensorImpl(), C10_AS_INTARRAYREF_SLOW(size), std::nullopt, false);
  const size_t bytes = (x.storage_offset() + x.numel()) * x.element_size();
  if (bytes > x.storage().nbytes()) resize_bytes(x.storage(), bytes);
  return x;
}

at::Tensor& set_storage(at::Tensor& x, c10::Storage source, c10::SymInt offset, c10::SymIntArrayRef size,
                        c10::SymIntArrayRef stride) {
  return at::native::set_storage_cpu_(x, std::move(source), offset.expect_int(), C10_AS_INTARRAYREF_SLOW(size),
                                      C10_AS_INTARRAYREF_SLOW(stride));
}

// As torch says of CUDA: the host waits for its own numbers only where ``non_blocking`` is false.
at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  if (!to.is_privateuseone()) count("device to host");
  if (!from.is_privateuseone() && !non_blocking) count("host to device");
  at::Tensor target = on_cpu(to);
  target.copy_(on_cpu(from));
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  if (to.sizes() != from.sizes()) to.resize_(from.sizes());
  return copy_from(from, to, false);
}

at::Scalar read_number(const at::Tensor& x) {
  count("item");
  return on_cpu(x).item();
}

void check_one_device(const std::string& name, bool some_here, bool some_elsewhere) {
  TORCH_CHECK(!(some_here && some_elsewhere), "two devices: ", name, " has tensors of standin and of the CPU");
}

at::Tensor convolve(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                    c10::SymIntArrayRef stride, c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed,
                    c10::SymIntArrayRef output_padding, c10::SymInt groups) {
  const bool bias_elsewhere = bias.has_value() && bias->defined() && !bias->is_privateuseone();
  check_one_device("convolution", true, !x.is_privateuseone() || !weight.is_privateuseone() || bias_elsewhere);
  Inside inside;
  std::optional<at::Tensor> shift;
  if (bias.has_value()) shift = on_cpu(*bias);
  return on_device(at::convolution_symint(on_cpu(x), on_cpu(weight), shift, stride, padding, dilation, transposed,
                                          output_padding, groups));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolve_backward(
    const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& weight, c10::SymIntArrayRef stride,
    c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed, c10::SymIntArrayRef output_padding,
    c10::SymInt groups, std::array<bool, 3> asked) {
  Inside inside;
  const c10::SymInt outputs = transposed ? weight.sym_size(1) * groups : weight.sym_size(0);
  const std::vector<c10::SymInt> bias_size = {outputs};
  auto [of_x, of_weight, of_bias] =
      at::convolution_backward_symint(on_cpu(gradient), on_cpu(x), on_cpu(weight), c10::SymIntArrayRef(bias_size), stride,
                                      padding, dilation, transposed, output_padding, groups, asked);
  return {on_device(of_x), on_device(of_weight), on_device(of_bias)};
}

// Its schema does not say that it writes the running statistics, so that the fallback would lose them.
std::tuple<at::Tensor, at::Tensor, at::Tensor> batch_norm(
    const at::Tensor& x, const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias,
    const std::optional<at::Tensor>& mean, const std::optional<at::Tensor>& variance, bool training, double momentum,
    double eps) {
  const auto here = [](const std::optional<at::Tensor>& given) -> std::optional<at::Tensor> {
    if (!given.has_value() || !given->defined()) return std::nullopt;
    check_one_device("batch_norm", true, !given->is_privateuseone());
    return on_cpu(*given);
  };
  check_one_device("batch_norm", true, !x.is_privateuseone());
  Inside inside;
  auto [y, batch_mean, inverse_sd] =
      at::native_batch_norm(on_cpu(x), here(weight), here(bias), here(mean), here(variance), training, momentum, eps);
  return {on_device(y), on_device(batch_mean), on_device(inverse_sd)};
}

// A cell of an LSTM, which PyTorch takes to be one kernel on any accelerator: gates i, f, g, o [B, 4H] and the two states.
std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                                                         const at::Tensor& cell, const std::optional<at::Tensor>& input_bias,
                                                         const std::optional<at::Tensor>& hidden_bias) {
  at::Tensor gates = input_gates + hidden_gates;
  if (input_bias.has_value() && input_bias->defined()) gates = gates + *input_bias;
  if (hidden_bias.has_value() && hidden_bias->defined()) gates = gates + *hidden_bias;
  const std::vector<at::Tensor> parts = gates.chunk(4, 1);
  const at::Tensor i = parts[0].sigmoid(), f = parts[1].sigmoid(), g = parts[2].tanh(), o = parts[3].sigmoid();
  const at::Tensor next = f * cell + i * g;
  return {o * next.tanh(), next, at::cat({i, f, g, o}, 1)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell_backward(const std::optional<at::Tensor>& of_hidden,
                                                                  const std::optional<at::Tensor>& of_next,
                                                                  const at::Tensor& cell, const at::Tensor& next,
                                                                  const at::Tensor& activated, bool has_bias) {
  const std::vector<at::Tensor> parts = activated.chunk(4, 1);
  const at::Tensor &i = parts[0], &f = parts[1], &g = parts[2], &o = parts[3];
  const auto or_zeros = [&](const std::optional<at::Tensor>& x) {
    return x.has_value() && x->defined() ? *x : at::zeros_like(next);
  };
  const at::Tensor up = or_zeros(of_hidden), squashed = next.tanh();
  const at::Tensor of_cell = or_zeros(of_next) + up * o * (1 - squashed * squashed);
  const at::Tensor of_gates = at::cat({of_cell * g * i * (1 - i), of_cell * cell * f * (1 - f), of_cell * i * (1 - g * g),
                                       up * squashed * o * (1 - o)}, 1);
  return {of_gates, of_cell * f, has_bias ? of_gates.sum(0) : at::Tensor()};
}

// Dropout, which PyTorch takes to be one kernel too, from the device's own global stream.
std::tuple<at::Tensor, at::Tensor> dropout(const at::Tensor& x, double p, std::optional<bool> training) {
  if (!training.value_or(true) || p == 0) return {x.clone(), at::ones_like(x, x.options().dtype(at::kBool))};
  const at::Tensor kept = at::empty_like(x).bernoulli_(1 - p);
  return {x * (kept / (1 - p)), kept.to(at::kBool)};
}

int64_t choose_attention(const at::Tensor&, const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&, double, bool,
                         std::optional<double>, bool) {
  return 0;  // matrix products and a softmax: each comes here by itself
}

// ---- everything else

struct Seen {
  bool here = false;
  bool elsewhere = false;
  void add(const at::Tensor& x) {
    if (!x.defined()) return;
    if (x.is_privateuseone()) here = true;
    else if (x.dim() > 0 || x.is_meta()) elsewhere = true;  // one number of the CPU may go anywhere
  }
};

// A GPU reads indices of the CPU, and writes one number of it.
bool takes_indices(const std::string& name) {
  static const std::set<std::string> names = {"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_",
                                              "aten::_unsafe_index", "aten::_unsafe_index_put"};
  return names.count(name) > 0;
}

Seen look(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> given) {
  Seen seen;
  const auto& arguments = op.schema().arguments();
  const bool indexed = takes_indices(op.schema().name());
  bool self_here = !given.empty() && given[0].isTensor() && given[0].toTensor().is_privateuseone();
  for (size_t i = 0; i < given.size(); ++i) {
    if (indexed && self_here && arguments[i].name() == "indices") continue;
    const c10::IValue& value = given[i];
    if (value.isTensor()) seen.add(value.toTensor());
    else if (value.isTensorList()) for (const at::Tensor& x : value.toTensorVector()) seen.add(x);
    else if (value.isOptionalTensorList()) {
      for (const std::optional<at::Tensor> x : value.toOptionalTensorList()) if (x.has_value()) seen.add(*x);
    }
  }
  return seen;
}

// Eigenvectors and singular vectors have no sign of their own: a GPU's library may give others than the CPU's.
void turn_vectors(const std::string& name, torch::jit::Stack* stack) {
  const auto turn = [&](size_t from_end) { stack->at(stack->size() - from_end).toTensor().neg_(); };
  if (name == "aten::_linalg_eigh") turn(1);
  if (name == "aten::_linalg_svd") {
    turn(1);
    turn(3);
  }
}

void fall_back_to_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const std::string name = schema.overload_name().empty() ? schema.name() : schema.name() + "." + schema.overload_name();
  const size_t n = schema.arguments().size();
  const size_t first = stack->size() - n;
  const Seen seen = look(op, c10::ArrayRef<c10::IValue>(stack->data() + first, n));
  check_one_device(name, seen.here, seen.elsewhere);
  if (kWaits.count(name) > 0 || kWaits.count(schema.name()) > 0) count(schema.name().substr(6));
  for (size_t i = 0; i < n; ++i) {
    c10::IValue& value = (*stack)[first + i];
    if (schema.arguments()[i].name() == "generator" && value.isNone()) value = default_generator();
    if (!value.isGenerator()) continue;
    at::Generator given = value.toGenerator();
    TORCH_CHECK(given.device().type() == kType, "two devices: ", name, " has tensors of standin and a generator of ",
                given.device());
    value = static_cast<Generator*>(given.unsafeGetGeneratorImpl())->cpu;
  }
  Inside inside;
  at::native::cpu_fallback(op, stack, false);
  turn_vectors(schema.name(), stack);
}

c10::Dict<std::string, int64_t> read_counts() {
  std::lock_guard<std::mutex> guard(counts_lock);
  c10::Dict<std::string, int64_t> out;
  for (const auto& [name, number] : counts) out.insert(name, number);
  return out;
}

void clear_counts() {
  std::lock_guard<std::mutex> guard(counts_lock);
  counts.clear();
}

// The default generator, of operations that are given none.
void seed(int64_t value) { default_generator().unsafeGetGeneratorImpl()->set_current_seed(static_cast<uint64_t>(value)); }

at::Tensor read_state() { return default_generator().get_state(); }

void write_state(const at::Tensor& state) { default_generator().unsafeGetGeneratorImpl()->set_state(*state.unsafeGetTensorImpl()); }

void set_float64(bool value) { has_float64 = value; }

}  // namespace

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&fall_back_to_cpu>()); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("as_strided", &as_strided);
  m.impl("view", &view);
  m.impl("_reshape_alias", &reshape_alias);
  m.impl("unfold", &at::native::unfold);
  m.impl("view_as_real", &at::native::view_as_real);
  m.impl("view_as_complex", &at::native::view_as_complex);
  m.impl("resize_", &resize);
  m.impl("set_.source_Storage", static_cast<at::Tensor& (*)(at::Tensor&, at::Storage)>(&at::native::set_));
  m.impl("set_.source_Storage_storage_offset", &set_storage);
  m.impl("set_.source_Tensor", &at::native::set_tensor_);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("_local_scalar_dense", &read_number);
  m.impl("convolution_overrideable", &convolve);
  m.impl("convolution_backward_overrideable", &convolve_backward);
  m.impl("native_batch_norm", &batch_norm);
  m.impl("native_dropout", &dropout);
  m.impl("_thnn_fused_lstm_cell", &lstm_cell);
  m.impl("_thnn_fused_lstm_cell_backward_impl", &lstm_cell_backward);
  m.impl("_fused_sdp_choice", &choose_attention);
}

TORCH_LIBRARY(standin, m) {
  m.def("waits() -> Dict(str, int)", &read_counts);
  m.def("clear_waits() -> ()", &clear_counts);
  m.def("seed(int value) -> ()", &seed);
  m.def("read_state() -> Tensor", torch::CppFunction::makeFromUnboxedFunction(&read_state));
  m.def("write_state(Tensor state) -> ()", torch::CppFunction::makeFromUnboxedFunction(&write_state));
  m.def("set_float64(bool value) -> ()", &set_float64);
}

namespace {
Hooks hooks;
[[maybe_unused]] const bool registered = (at::RegisterPrivateUse1HooksInterface(&hooks), true);
}  // namespace
