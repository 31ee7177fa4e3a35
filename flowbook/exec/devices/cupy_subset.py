"""What CuPy does not have, or does not notice, of what kernels can ask of NumPy.

The simulated device refuses it, so that a kernel that is right there can be right on a GPU. Held
against CuPy 14.2 and NumPy 2.4.
"""

from __future__ import annotations

# Functions and modules of NumPy that kernels cannot use on a GPU.
MISSING = frozenset(
    {
        # CuPy has none.
        *("asmatrix", "block", "bmat", "char", "einsum_path", "emath", "errstate", "geomspace"),
        *("histogram_bin_edges", "insert", "isnat", "ma", "matrix_norm", "matvec", "memmap"),
        *("multi_dot", "nanpercentile", "nanquantile", "ndenumerate", "nditer", "nested_iters"),
        *("polyder", "polydiv", "polyint", "rec", "recarray", "spacing", "strings", "svdvals"),
        *("unstack", "vecdot", "vecmat", "vector_norm"),
        # They call Python's functions, which no GPU runs.
        *("apply_along_axis", "apply_over_axes", "fromfunction", "frompyfunc", "piecewise"),
        "vectorize",
        # What reads files and the host's memory has no place in a kernel.
        *("frombuffer", "fromfile", "fromiter", "fromregex", "fromstring", "genfromtxt", "load"),
        "loadtxt",
        # Random numbers are Flowbook's own, the same on every kind of device.
        "random",
    }
)

# Methods and attributes of arrays that CuPy's lack, or that would show host memory.
MISSING_OF_ARRAYS = frozenset(
    {
        *("base", "byteswap", "ctypes", "data", "dump", "dumps", "flat", "getfield", "resize"),
        *("setfield", "setflags", "to_device", "tobytes", "tofile"),
    }
)

# Keywords that CuPy's functions do not take, whichever function it is; by some alone.
MISSING_KEYWORDS = frozenset(
    {"correction", "device", "initial", "like", "ndmax", "stable", "subok", "where"}
)
MISSING_KEYWORDS_OF = {
    "argpartition": frozenset({"kind", "order"}),
    "argsort": frozenset({"order", "descending"}),
    "count_nonzero": frozenset({"keepdims"}),
    "einsum": frozenset({"out"}),
    "isin": frozenset({"kind"}),
    "lexsort": frozenset({"axis"}),
    "partition": frozenset({"kind", "order"}),
    "percentile": frozenset({"weights"}),
    "quantile": frozenset({"weights"}),
    "sort": frozenset({"order", "descending"}),
    "take": frozenset({"mode"}),
    "unique": frozenset({"sorted"}),
}

# Parameters that CuPy's functions call otherwise, or lack: they are given by their place.
NAMED_OTHERWISE = {
    "arange": frozenset({"start_or_stop"}),
    "array": frozenset({"object"}),
    "clip": frozenset({"max", "min"}),
    "concat": frozenset({"arrays"}),
    "concatenate": frozenset({"arrays"}),
    "corrcoef": frozenset({"x"}),
    "cov": frozenset({"m"}),
    "delete": frozenset({"obj"}),
    "ediff1d": frozenset({"ary"}),
    "extract": frozenset({"arr"}),
    "flip": frozenset({"m"}),
    "fliplr": frozenset({"m"}),
    "flipud": frozenset({"m"}),
    "histogram": frozenset({"a"}),
    "indices": frozenset({"sparse"}),
    "intersect1d": frozenset({"ar1", "ar2"}),
    "nanstd": frozenset({"mean"}),
    "nanvar": frozenset({"mean"}),
    "reshape": frozenset({"shape"}),
    "rot90": frozenset({"m"}),
    "stack": frozenset({"arrays"}),
    "std": frozenset({"mean"}),
    "take_along_axis": frozenset({"arr"}),
    "trim_zeros": frozenset({"axis"}),
    "union1d": frozenset({"ar1", "ar2"}),
    "unpackbits": frozenset({"count"}),
    "unravel_index": frozenset({"shape"}),
    "var": frozenset({"mean"}),
}

# The universal functions whose methods CuPy has. Its `at` takes few dtypes, and adds in any order.
METHODS_OF_UFUNCS = {
    "reduce": frozenset({"add", "multiply"}),
    "accumulate": frozenset({"add", "multiply"}),
    "reduceat": frozenset({"add"}),
}

# Parameters that are values of the host's, in whichever function: CuPy waits for a device's, or
# refuses it.
OF_THE_HOST = frozenset(
    {
        *("M", "N", "axes", "axis", "axis1", "axis2", "ddof", "decimals", "destination", "dims"),
        *("dtype", "indices_or_sections", "k", "keepdims", "kth", "minlength", "n", "new_shape"),
        *("num", "offset", "order", "pad_width", "reps", "s", "shape", "shift", "source"),
        *("start_or_stop", "step", "window_shape"),
    }
)

# Functions that wait for the device: what they give depends on its values.
WAITING = frozenset(
    {
        *("argwhere", "bincount", "compress", "delete", "digitize", "extract", "flatnonzero"),
        *("histogram", "interp", "intersect1d", "nonzero", "percentile", "place", "putmask"),
        *("setdiff1d", "setxor1d", "trim_zeros", "union1d", "unique", "unique_all"),
        *("unique_counts", "unique_inverse", "unique_values"),
    }
)

# Functions that take indices, which CuPy wraps where they lie outside.
INDEXING = frozenset({"choose", "put", "put_along_axis", "take", "take_along_axis"})

# Functions that take no complex numbers.
OF_NO_COMPLEX = frozenset({"logical_and", "logical_not", "logical_or", "logical_xor"})

# Functions whose first two arguments have one shape but for the last axis: NumPy's broadcast them.
OF_ONE_BATCH = frozenset({"solve"})

# Functions that put host values on the device, and those that leave memory as they find it.
COPYING_IN = frozenset({"array", "asanyarray", "asarray", "ascontiguousarray", "asfortranarray"})
UNINITIALISED = frozenset({"empty", "empty_like"})

# Functions whose answer is the host's, as it does not depend on the values of arrays.
ANSWERED_BY_HOST = frozenset(
    {
        *("broadcast_shapes", "can_cast", "common_type", "iscomplexobj", "isrealobj", "isscalar"),
        *("issubdtype", "may_share_memory", "min_scalar_type", "ndim", "promote_types"),
        *("result_type", "shape", "shares_memory", "size"),
    }
)
