"""What a kernel is, by its name: its family, whose code it is, in which precision it computes.

On a GPU names come from cuBLAS, cuDNN, CUTLASS, NCCL, FlashAttention, ATen and Inductor's Triton; on a CPU
they are operators and the C++ that Inductor writes. A name that no rule fits is `unknown`, not `other`.
Source: the libraries that torch 2.6 brings, torch/_inductor/codegen (`define_kernel`), records of an H100.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache


class Family(StrEnum):
    ATTENTION = "attention"
    MATRIX = "matrix products"
    CONVOLUTION = "convolution"
    REDUCTION = "normalisation and reduction"
    POINTWISE = "pointwise"
    COPY = "copies and casts"
    COLLECTIVE = "collectives"
    GENERATED = "generated code"
    """Code that Inductor wrote for a CPU, whose kernels the profiler did not tell apart."""
    HOST = "Python and wrappers"
    OTHER = "other"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Kernel:
    """What a name says. None where it says nothing of it."""

    family: Family
    library: str | None = None
    """Whose code: cuBLAS, cuDNN, CUTLASS, Triton, ATen, C++, NCCL ..."""
    variant: str | None = None
    """Of attention how it runs: `cuDNN flash`, `flash`, `memory-efficient`, `flex`, `unfused`."""
    precision: str | None = None
    """What a matrix product multiplies: float64, float32, TF32, bfloat16, float16, float8, int8."""
    tensor_cores: bool | None = None
    casts: bool = False
    """Whether it changes dtypes, besides what else it does."""
    softmax: bool = False

    @property
    def fused_attention(self) -> bool:
        """Whether one kernel does what unfused attention needs several for."""
        return self.family is Family.ATTENTION and self.variant not in (None, UNFUSED)


UNFUSED = "unfused"

_TRITON = re.compile(r"(?:^|_)triton_(poi|red|per|tem|for|spl|unk|mm|bmm|convolution)_?(.*)$")
_CPP = re.compile(r"^(?:graph_\d+_)?cpp_(?:fused_)?(.*)$")
_OPERATOR = re.compile(r"^(aten|mkldnn|mkl|onednn|quantized|prims|c10d|nccl|gloo)::_?(.*)$")

# Operators in the names of fused kernels: "triton_per_fused_add_native_layer_norm_view_12".
_REDUCES = re.compile(
    r"(layer|batch|group|rms|vector)_norm|softmax|(^|_)(mean|sum|var|var_mean|std|prod|amax|amin|argmax|argmin"
    r"|any|all|max|min|norm|logsumexp|cumsum|cumprod|nll_loss|cross_entropy|pool2d)(?=_|\d|$)"
)
_MOVES = re.compile(
    r"_?to_copy|convert_element_type|_unsafe_view|clone|copy_?|contiguous|view|transpose|permute|expand|reshape"
    r"|unsqueeze|squeeze|slice_scatter|slice|select_scatter|select|split_with_sizes|split|cat|stack|as_strided"
    r"|constant_pad_nd|unbind|alias|lift_fresh|detach|new_zeros|zeros|ones|full|fill|t(?=_|$)|\d+|_"
)
_CASTS = re.compile(r"to_copy|convert_element_type|LoadWithCast|(bfloat16|float16|float8)_copy_kernel")
_MULTIPLIES = re.compile(
    r"(^|_)(mm|bmm|addmm|baddbmm|addmv|mv|linear|mkl_linear|linear_pointwise|scaled_mm|int_mm)(?=_|\d|$)"
)
_CONVOLVES = re.compile(r"conv(olution|\dd|_|(?=\d))|mkldnn_convolution")


@cache
def classify(name: str) -> Kernel:
    """What the profiler's `name` of a kernel or operator stands for."""
    if match := _TRITON.search(name):
        return _triton(*match.groups())
    if match := _CPP.match(name):
        return _fused("C++", match[1])
    if match := _OPERATOR.match(name):
        return _operator(*match.groups())
    for pattern, kernel in _HOST_REGIONS:
        if pattern.search(name):
            return kernel
    return _device(name)


def canonical(name: str) -> str:
    """A kernel's name without the numbers that Inductor counts its kernels and graphs with, the same in two
    releases for the same work.
    """
    if _TRITON.search(name) or _CPP.match(name):
        return re.sub(r"^graph_\d+_|_\d+$", "", name)
    return name


def _triton(kind: str, operators: str) -> Kernel:
    """torch/_inductor/codegen/triton.py: "triton", three letters of the kind, the operators fused in it."""
    operators = operators.removeprefix("fused_")
    if kind in ("tem", "mm", "bmm", "convolution"):
        if "flex_attention" in operators:
            return Kernel(Family.ATTENTION, "Triton", "flex")
        convolves = kind == "convolution" or (
            _CONVOLVES.search(operators) and not _MULTIPLIES.search(operators)
        )
        return Kernel(Family.CONVOLUTION if convolves else Family.MATRIX, "Triton")
    fused = _fused("Triton", operators)
    if fused.family is Family.ATTENTION:
        return fused
    # What the kind says is sure: "sum" in the name of a pointwise kernel is a sum that another kernel made.
    family = {"red": Family.REDUCTION, "per": Family.REDUCTION, "spl": Family.REDUCTION}.get(kind)
    if kind in ("poi", "for") and fused.family is not Family.COPY:
        family = Family.POINTWISE
    return Kernel(family or fused.family, "Triton", casts=fused.casts, softmax=fused.softmax)


def _fused(library: str, operators: str) -> Kernel:
    casts, softmax = bool(_CASTS.search(operators)), "softmax" in operators
    if "_safe_softmax" in operators:
        # Only attention that was taken apart has it: aten/src/ATen/native/transformers/attention.cpp.
        return Kernel(Family.ATTENTION, library, UNFUSED, casts=casts, softmax=True)
    if library == "C++" and _CONVOLVES.search(operators):
        return Kernel(Family.CONVOLUTION, library)
    if library == "C++" and _MULTIPLIES.search(operators):
        return Kernel(Family.MATRIX, library)
    if _REDUCES.search(operators):
        return Kernel(Family.REDUCTION, library, casts=casts, softmax=softmax)
    rest = _MOVES.sub("", operators)
    if not rest and operators.strip("_0123456789"):
        return Kernel(Family.COPY, library, casts=casts)
    return Kernel(Family.POINTWISE if rest else Family.UNKNOWN, library, casts=casts)


# Operators, on a CPU or on the host of a GPU; the first rule that fits decides.
_OPERATORS: tuple[tuple[str, Kernel], ...] = (
    (r"scaled_dot_product_attention_math", Kernel(Family.ATTENTION, "ATen", UNFUSED)),
    (r"cudnn_attention|scaled_dot_product_cudnn", Kernel(Family.ATTENTION, "cuDNN", "cuDNN flash")),
    (r"efficient_attention", Kernel(Family.ATTENTION, "ATen", "memory-efficient")),
    (r"flash_attention", Kernel(Family.ATTENTION, "ATen", "flash")),
    (r"flex_attention", Kernel(Family.ATTENTION, "ATen", "flex")),
    (r"scaled_dot_product|multi_head_attention", Kernel(Family.ATTENTION, "ATen")),
    (r"safe_softmax", Kernel(Family.ATTENTION, "ATen", UNFUSED, softmax=True)),
    (r"allreduce|all_reduce|all_gather|allgather|reduce_scatter|all_to_all|broadcast_?$|barrier|send|recv"
     r"|wait_tensor", Kernel(Family.COLLECTIVE)),
    (r"conv(olution|\dd|_|$)|thnn_conv|slow_conv|mkldnn_convolution", Kernel(Family.CONVOLUTION, "ATen")),
    (r"rnn|lstm|gru(_|$)", Kernel(Family.OTHER, "ATen")),
    (r"^(\w+_)?(mm|bmm|addmm|baddbmm|addmv|mv|dot|vdot|linear|matmul|einsum|addbmm|linear_pointwise"
     r"|addmm_activation|ger|addr|bilinear)(_backward|_out)?_?$", Kernel(Family.MATRIX, "ATen")),
    (r"softmax", Kernel(Family.REDUCTION, "ATen", softmax=True)),
    (r"(layer|batch|group|instance|rms|local_response|vector|weight)_norm|pool\dd|nll_loss|cross_entropy"
     r"|^(sum|mean|var|std|norm|prod|max|min|amax|amin|aminmax|argmax|argmin|any|all|cumsum|cumprod"
     r"|logsumexp|logcumsumexp|count_nonzero|median|var_mean|std_mean|mse_loss|l1_loss)(_backward|_dim\w*)?_?$",
     Kernel(Family.REDUCTION, "ATen")),
    (r"^(to_copy|to|convert_element_type|to_dtype)$", Kernel(Family.COPY, "ATen", casts=True)),
    (r"^(copy|clone|contiguous|cat|stack|fill|zero|zeros|ones|full|new_\w+|\w+_like|reshape|empty\w*"
     r"|as_strided|view\w*|t|transpose|permute|movedim|expand\w*|slice\w*|select\w*|unsqueeze|squeeze|resize\w*"
     r"|detach|alias|unsafe_view|reshape_alias|split\w*|chunk|narrow|unbind|resolve_\w+|constant_pad_nd|pad"
     r"|pin_memory|lift_fresh|flatten|unflatten|unfold|flip|roll|repeat\w*|numpy_T|item|scalar_tensor|local_scalar_dense"
     r"|reorder_\w+|to_dense|to_mkldnn|set)_?$", Kernel(Family.COPY, "ATen")),
    (r"^(add|sub|rsub|mul|div|neg|abs|exp|exp2|expm1|log|log2|log1p|pow|sqrt|rsqrt|reciprocal|square|sin|cos|tan"
     r"|tanh|sigmoid|relu|relu6|gelu|silu|mish|elu|selu|leaky_relu|hardtanh|hardswish|hardsigmoid|softplus"
     r"|log_sigmoid|erf|erfc|clamp|clamp_min|clamp_max|where|masked_fill|maximum|minimum|threshold|addcmul"
     r"|addcdiv|lerp|eq|ne|lt|le|gt|ge|logical_\w+|bitwise_\w+|floor|ceil|round|trunc|sign|remainder|fmod|fma"
     r"|floor_divide|atan2?|asin|acos|sinh|cosh|isnan|isinf|isfinite|is(neg|pos)inf|nan_to_num|dropout|native_dropout"
     r"|bernoulli|uniform|normal|rand\w*|arange|tril|triu|glu|foreach_\w+|fused_adamw?|fused_sgd)"
     r"(_backward)?_?$", Kernel(Family.POINTWISE, "ATen")),
    (r"embedding|index|gather|scatter|sort|topk|nonzero|take|masked_select|unique|upsample|interpolate|im2col"
     r"|col2im|grid_sampler|one_hot|searchsorted|bucketize|multinomial|fft|linalg|cholesky|histc|bincount",
     Kernel(Family.OTHER, "ATen")),
)  # fmt: skip
_OPERATOR_RULES = tuple((re.compile(pattern), kernel) for pattern, kernel in _OPERATORS)
_ONEDNN = ("mkldnn", "onednn")


def _operator(namespace: str, name: str) -> Kernel:
    for pattern, kernel in _OPERATOR_RULES:
        if pattern.search(name):
            library = {"mkl": "MKL"}.get(namespace, kernel.library)
            library = "oneDNN" if namespace in _ONEDNN or name.startswith("mkldnn") else library
            return replace(kernel, library=library)
    return Kernel(Family.UNKNOWN)


# What the profiler names besides kernels and operators; the worker already took out what is new each time.
_HOST_REGIONS = tuple(
    (re.compile(pattern), Kernel(family))
    for pattern, family in (
        (r"^generated code$", Family.GENERATED),
        (r"^(Torch-Compiled Region|TorchDynamo|Pregraph bytecode|AOTDispatcher|CompiledFunction|autograd::"
         r"|Optimizer\.|torch/|\w+Backward\d*$|ProfilerStep|## )", Family.HOST),
    )
)  # fmt: skip

# Kernels of a device; the first rule that fits decides.
_DEVICE: tuple[tuple[str, Kernel], ...] = (
    (r"^Mem(cpy|set)\b", Kernel(Family.COPY, "CUDA")),
    (r"nccl(Dev)?Kernel|^nccl|rccl|oneRankReduce", Kernel(Family.COLLECTIVE, "NCCL")),
    (r"(one|two)_shot_all_reduce|multimem_\w+|all_?reduce|nvshmem|ll_recv|stream_(write|wait)_value",
     Kernel(Family.COLLECTIVE)),
    (r"cudnn\w*sdpa|cudnn::fusion::|fmha_cw_1|multiHeadAttn",
     Kernel(Family.ATTENTION, "cuDNN", "cuDNN flash")),
    (r"fmha_cutlass[FB]|PyTorchMemEffAttention",
     Kernel(Family.ATTENTION, "CUTLASS", "memory-efficient")),
    (r"flash_(fwd|bwd)|FlashAttn|FlashAttention|flash::|attn_fwd|attn_bwd|aotriton|Fmha(Fwd|Bwd)|fmha_(fwd|bwd)",
     Kernel(Family.ATTENTION, "FlashAttention", "flash")),
    (r"transform_bias_rescale_qkv|add_padding_kernel|remove_padding", Kernel(Family.COPY, "ATen")),
    (r"nchwToNhwc|nhwcToNchw|tensorTransform|reformat|cudnn::ops::scalePackedTensor|transposeKernel"
     r"|To(Folded)?N(chw|hwc)|AddPaddingKernel|SliceCKernel|tensor_transform|[tT]ranspose\w*_kernel"
     r"|[cC]onvertTen|memcpy\w*TypeConversion", Kernel(Family.COPY, "cuDNN")),
    (r"batchnorm|bn_(fw|bw)_|SBAR_1C11|cudnn::.*softmax|softmax_(fw|bw)_|norm_(fw|bw)|pooling_(fw|bw)"
     r"|finalizeBNStats|combineScaleBias|lrn|divNorm|reduce_tensor"
     r"|[sS]oftmax(For|Back)ward", Kernel(Family.REDUCTION, "cuDNN")),
    (r"RNN_|elemWiseRNNcell|(LSTM|GRU|RNN|GENERIC)_elementWise|persistRNN|lstm_tile|_rnn_|lstm_cell|gru_cell",
     Kernel(Family.OTHER, "cuDNN")),
    (r"dropout_(fp|bp)|op_(generic_)?tensor_kernel|add_tensor_kernel|activation_(fw|bw)",
     Kernel(Family.POINTWISE, "cuDNN")),
    (r"fprop|dgrad|wgrad|implicit_gemm|implicit_convolve|precomputed_convolve|convolve_|winograd|conv\dd"
     r"|convNd|depthwise_convolution|calc_bias_diff|cudnn::cnn::|flip_filter|compute_gemm_pointers"
     r"|s16816cudnn|fft[12]d_", Kernel(Family.CONVOLUTION, "cuDNN")),
    (r"conv_depthwise|im2col|col2im|vol2col|col2vol|slow_conv", Kernel(Family.CONVOLUTION, "ATen")),
    (r"Cijk_", Kernel(Family.MATRIX, "hipBLAS")),
    (r"nvjet_", Kernel(Family.MATRIX, "cuBLAS", tensor_cores=True)),
    (r"cutlass3x|cutlass::device_kernel|f8f8bf16|fp8_rowwise", Kernel(Family.MATRIX, "CUTLASS")),
    (r"gemm(?!_data)|gemv|splitK|cublas|gemmSN|dot_kernel|reduce_1Block|trsm|trmm|syrk|symm|herk|hemm"
     r"|xmma::gemm|cutlass|geam_kernel", Kernel(Family.MATRIX, "cuBLAS")),
    (r"syr2k|her2k|s[yh]\w*mv|trsv|get(rf|ri|rs)|geqr|gels|magma_|cusolver|cusparse",
     Kernel(Family.OTHER, "cuSOLVER")),
)  # fmt: skip
_DEVICE_RULES = tuple((re.compile(pattern), kernel) for pattern, kernel in _DEVICE)
# ATen's own kernels: `at::native::`, and CUB and Thrust below them. The head is the function's name, the rest
# are the types it was made for.
_ATEN: tuple[tuple[str, Family], ...] = (
    (r"softmax|SoftMax", Family.REDUCTION),
    (r"layer_norm|LayerNorm|GroupNorm|group_norm|batch_norm|BatchNorm|RMSNorm|rms_norm|RowwiseMoments|Gamma\w*"
     r"Backward|weight_norm|renorm|ComputeFusedParams|Compute\w*(Gradients|FusedParams)|ComputeInternal"
     r"|transpose_sum|batchnorm", Family.REDUCTION),
    (r"reduce_kernel|Reduce(Single|By|Kernel)|DeviceReduce|SegmentedReduce|lpnorm|nll_loss|_pool|pool_"
     r"|[Pp]ool(ing)?|Scan(Init|By)?|scan_(inner|outer)|cross_kernel|cdist|pdist|ctc_loss|cumsum|kernelReduce"
     r"|weighted_reduce|sum_and_scatter|multilabel|MultiMargin|cunn_\w*Criterion|kernelHistogram",
     Family.REDUCTION),
    (r"CatArray|chunk_cat|split_with_sizes|copy_kernel|Padding|padding|flip_cuda|roll_cuda|unroll_cat|tril"
     r"|pad_jagged|repeat_kernel|repeat_interleave|FillFunctor|fill_", Family.COPY),
    (r"[Rr]adix[Ss]ort|MergeSort|sort|topk|TopK|[Mm]edian|mode|[Uu]nique|Select(Sweep|If)|CompactInit"
     r"|embedding|Embedding|index|gather|scatter|upsample|Upsample|grid_sampler|gatherTopK|AdjacentDifference"
     r"|EmptyKernel|masked_(scatter|select)|write_indices|searchsorted|bucketize|tensor_kernel|fft|dense_esuhm"
     r"|sparse|csr|histogram|randperm|thrust|for_each|_kernel_agent|linalg|triangular|cholesky|nested|jagged"
     r"|lstm_cell|gru_cell|prepare_\w*gemm|grouped_gemm|computeBlock|compute_num_of_partial"
     r"|krn_partial|sampl", Family.OTHER),
    (r"elementwise|_elemwise|apply_kernel|PointwiseApply|multi_tensor_apply|[Dd]istribution|dropout|rrelu|foreach|gpu_kernel|pointwise|[Rr]andom"
     r"|amp_|glu_|activation|transform_vals", Family.POINTWISE),
)  # fmt: skip
_ATEN_RULES = tuple((re.compile(pattern), family) for pattern, family in _ATEN)
_OF_ATEN = re.compile(
    r"^(void )?(at(_cuda_detail)?::|c10::|cub::|thrust::|cuda::|\(anonymous)|cunn_|softmax_warp|CatArray"
    r"|indexSelect|embedding_|multi_tensor|krn_|DeviceR|RowwiseM|vectorized_|elementwise_k"
)
_COPY_FUNCTOR = re.compile(r"copy_kernel_cuda|FillFunctor|fill_kernel|CopyFunctor")


def _device(name: str) -> Kernel:
    if _OF_ATEN.search(name) and not _DEVICE_OVER_ATEN.search(name):
        return _aten(name)
    for pattern, kernel in _DEVICE_RULES:
        if pattern.search(name):
            return _with_precision(name, kernel) if kernel.family is Family.MATRIX else kernel
    return Kernel(Family.UNKNOWN)


_DEVICE_OVER_ATEN = re.compile(
    r"conv_depthwise|im2col|col2im|slow_conv|f8f8bf16|all_?reduce|multimem|nvshmem|cutlass|pytorch_flash"
)


def _aten(name: str) -> Kernel:
    head = re.sub(r"\(anonymous namespace\)", "anonymous", name).removeprefix("void ")
    head = re.split(r"[<(]", head, maxsplit=1)[0].replace("anonymous::", "")
    head = head.removeprefix("at::native::").removeprefix("at::cuda::")
    if _COPY_FUNCTOR.search(name) and "elementwise" in head:
        return Kernel(Family.COPY, "ATen", casts=bool(_CASTS.search(name)))
    for pattern, family in _ATEN_RULES:
        if pattern.search(head):
            softmax = family is Family.REDUCTION and "softmax" in head.lower()
            return Kernel(family, "ATen", softmax=softmax)
    return Kernel(Family.UNKNOWN, "ATen")


# The precision in a matrix product's name, and whether tensor cores multiply; the first that fits decides.
# cuBLAS writes nvjet's input as one letter: t bfloat16, h half, s TF32, qq float8.
_PRECISIONS = tuple(
    (re.compile(pattern), precision, tensor_cores)
    for pattern, precision, tensor_cores in (
        (r"e4m3|e5m2|nvjet_(sm\d+_)?qq|f8f8|fp8|_f8_", "float8", True),
        (r"imma|i8816|i16832|_s8|i8i8|s8s8", "int8", True),
        (r"simt_|(ampere|volta|turing|maxwell|sm\d\d)_sgemm", "float32", False),
        (r"bf16|bfloat16|BFloat16|nvjet_(sm\d+_)?t[a-z]{2}_", "bfloat16", True),
        (r"tf32|_8\d_tensorop_s1688gemm|nvjet_(sm\d+_)?s[a-z]{2}_", "TF32", True),
        (r"(f|h|fp)16|[hs]1688gemm|[hs]884gemm|h161616|s161616|nvjet_(sm\d+_)?h[a-z]{2}_|__half|hgemm",
         "float16", True),
        (r"d884|[dz]gemm|f64", "float64", None),
        (r"sgemm|f32f32_f32f32", "float32", False),
    )
)  # fmt: skip
# Products of a matrix and a vector, and of few rows, are computed without tensor cores in every precision.
_WITHOUT_TENSOR_CORES = re.compile(r"gemv|gemmSN|gemmk1|dot_kernel|reduce_1Block|splitK|epilogue::impl")


def _with_precision(name: str, kernel: Kernel) -> Kernel:
    precision, tensor_cores = None, kernel.tensor_cores
    for pattern, named, on_tensor_cores in _PRECISIONS:
        if pattern.search(name):
            precision, tensor_cores = named, on_tensor_cores
            break
    if _WITHOUT_TENSOR_CORES.search(name):
        tensor_cores = None
    return Kernel(Family.MATRIX, kernel.library, precision=precision, tensor_cores=tensor_cores)
