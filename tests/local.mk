# SPDX-License-Identifier: MIT OR Apache-2.0
include tests/aarch64.mk
include tests/codec.mk
include tests/e2e.mk
include tests/encoder.mk
include tests/kernel.mk
include tests/mutants.mk
include tests/tools.mk
include tests/order.mk
include tests/shim.mk
include tests/torture.mk
include tests/proc.mk
include tests/fused.mk
include tests/fuzz.mk
include tests/reader.mk
