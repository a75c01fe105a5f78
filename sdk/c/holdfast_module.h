/*
 * holdfast_module.h: write a module of holdfast scan in C. Header only; include it in exactly one file.
 *
 * exports of a module, required:
 *   memory                                         linear memory, 32-bit
 *   hf_abi() -> i32                                version of the interface: 1
 *   hf_buffer(len: i32) -> i32                     address of room for len bytes; 0 = no room
 *   hf_start(name: i32, name_len: i32, size: i64)  an item begins; size -1 = unknown
 *   hf_block(ptr: i32, len: i32, offset: i64) -> i32   a block: 0 = continue, 1 = seen enough, < 0 = error
 *   hf_end() -> i32                                the item ends: 0 = fine, < 0 = error
 * exports of a module, optional:
 *   hf_args(ptr: i32, len: i32) -> i32             arguments, each ended by a NUL: 0 = accepted
 *   hf_overlap() -> i32                            >= 0: blocks are independent, and repeat so many bytes
 *   hf_finish()                                    the scan ends: emit totals
 * imports from "hf":
 *   emit(offset: i64, ptr: i32, len: i32)          a result; offset -1 = of the whole item
 *   log(ptr: i32, len: i32)                        a line for the log
 *
 * sdk/ABI.md explains the interface. Build:
 *   clang --target=wasm32 -nostdlib -O2 -Wl,--no-entry -Wl,--export-dynamic -o my.wasm my.c
 *
 * This header defines hf_abi, hf_buffer, an allocator and memcpy, memmove, memset, memcmp, strlen. You define
 * hf_start, hf_block and hf_end, and of hf_args, hf_overlap and hf_finish the ones that you need.
 */
#ifndef HOLDFAST_MODULE_H
#define HOLDFAST_MODULE_H

typedef __INT32_TYPE__ hf_i32;
typedef __UINT32_TYPE__ hf_u32;
typedef __INT64_TYPE__ hf_i64;
typedef __UINT8_TYPE__ hf_u8;
typedef __SIZE_TYPE__ hf_size;

#define HF_ABI_VERSION 1
#define HF_CONTINUE 0
#define HF_ENOUGH 1
#define HF_WHOLE_ITEM ((hf_i64)-1)

#define HF_EXPORT(name) __attribute__((export_name(#name), used)) name
#define HF_IMPORT(name) __attribute__((import_module("hf"), import_name(#name)))
/* The compiler must not replace the loops of memcpy and its like by calls of themselves. */
#define HF_PLAIN __attribute__((no_builtin, weak))

/* Imports from the host. */
HF_IMPORT(emit) void hf_emit(hf_i64 offset, const void *ptr, hf_i32 len);
HF_IMPORT(log) void hf_log(const void *ptr, hf_i32 len);

/* Exports of every module; hf_abi and hf_buffer are defined below. */
hf_i32 HF_EXPORT(hf_abi)(void);
hf_u8 *HF_EXPORT(hf_buffer)(hf_i32 len);
void HF_EXPORT(hf_start)(const char *name, hf_i32 name_len, hf_i64 size);
hf_i32 HF_EXPORT(hf_block)(const hf_u8 *ptr, hf_i32 len, hf_i64 offset);
hf_i32 HF_EXPORT(hf_end)(void);

/* Exports of some modules: write `HF_EXPORT(hf_args)` in the definition, too.
 *   hf_i32 HF_EXPORT(hf_args)(const char *ptr, hf_i32 len)
 *   hf_i32 HF_EXPORT(hf_overlap)(void)
 *   void HF_EXPORT(hf_finish)(void)
 */

HF_PLAIN void *memcpy(void *to, const void *from, hf_size len) {
    hf_u8 *t = (hf_u8 *)to;
    const hf_u8 *f = (const hf_u8 *)from;
    while (len--) *t++ = *f++;
    return to;
}

HF_PLAIN void *memmove(void *to, const void *from, hf_size len) {
    hf_u8 *t = (hf_u8 *)to;
    const hf_u8 *f = (const hf_u8 *)from;
    if (t <= f) {
        while (len--) *t++ = *f++;
    } else {
        while (len--) t[len] = f[len];
    }
    return to;
}

HF_PLAIN void *memset(void *to, int byte, hf_size len) {
    hf_u8 *t = (hf_u8 *)to;
    while (len--) *t++ = (hf_u8)byte;
    return to;
}

HF_PLAIN int memcmp(const void *a, const void *b, hf_size len) {
    const hf_u8 *x = (const hf_u8 *)a, *y = (const hf_u8 *)b;
    for (; len--; x++, y++)
        if (*x != *y) return *x < *y ? -1 : 1;
    return 0;
}

HF_PLAIN hf_size strlen(const char *text) {
    hf_size len = 0;
    while (text[len]) len++;
    return len;
}

/* Memory that is never given back; aligned to 16 bytes. Returns 0 where the limit of the scan is reached. */
static inline void *hf_allocate(hf_size len) {
    extern hf_u8 __heap_base;
    static hf_size next;
    const hf_size page = 65536;
    if (!next) next = ((hf_size)&__heap_base + 15) & ~(hf_size)15;
    hf_size have = (hf_size)__builtin_wasm_memory_size(0) * page;
    if (len > (hf_size)0xffff0000u - next) return 0;
    hf_size end = (next + len + 15) & ~(hf_size)15;
    if (end > have && __builtin_wasm_memory_grow(0, (end - have + page - 1) / page) == (hf_size)-1) return 0;
    void *start = (void *)next;
    next = end;
    return start;
}

hf_i32 hf_abi(void) { return HF_ABI_VERSION; }

/* One buffer for all calls; it at least doubles when it grows, for the old one is lost. */
hf_u8 *hf_buffer(hf_i32 len) {
    static hf_u8 *buffer;
    static hf_size room;
    hf_size wanted = (hf_size)(hf_u32)len;
    if (!buffer || wanted > room) {
        hf_size larger = wanted < 4096 ? 4096 : wanted;
        if (larger < 2 * room && room < (hf_size)1 << 30) larger = 2 * room;
        hf_u8 *fresh = (hf_u8 *)hf_allocate(larger);
        if (!fresh) return 0;
        buffer = fresh;
        room = larger;
    }
    return buffer;
}

#endif
