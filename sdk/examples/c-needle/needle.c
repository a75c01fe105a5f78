/*
 * Module that emits the offset of every occurrence of its argument.
 *
 * It keeps no state from block to block: with an overlap of its length - 1, each occurrence lies in exactly one
 * block. Build:
 *   clang --target=wasm32 -nostdlib -O2 -Wl,--no-entry -Wl,--export-dynamic -I../../c -o needle.wasm needle.c
 */
#include "holdfast_module.h"

static hf_u8 *needle;
static hf_size needle_len;

hf_i32 HF_EXPORT(hf_args)(const char *args, hf_i32 args_len) {
    static const char usage[] = "give one argument, the bytes to find";
    hf_size len = 0;
    while (len < (hf_size)args_len && args[len]) len++;
    /* One argument, and its NUL is the last byte. */
    if (len == 0 || len + 1 != (hf_size)args_len || !(needle = hf_allocate(len))) {
        hf_log(usage, sizeof usage - 1);
        return -1;
    }
    memcpy(needle, args, len);
    needle_len = len;
    return 0;
}

hf_i32 HF_EXPORT(hf_overlap)(void) { return (hf_i32)needle_len - 1; }

void hf_start(const char *name, hf_i32 name_len, hf_i64 size) { (void)name, (void)name_len, (void)size; }

hf_i32 hf_block(const hf_u8 *block, hf_i32 len, hf_i64 offset) {
    for (hf_size at = 0; at + needle_len <= (hf_size)len; at++)
        if (block[at] == needle[0] && memcmp(block + at, needle, needle_len) == 0)
            hf_emit(offset + (hf_i64)at, needle, (hf_i32)needle_len);
    return HF_CONTINUE;
}

hf_i32 hf_end(void) { return 0; }
