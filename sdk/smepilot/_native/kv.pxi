# SPDX-License-Identifier: Apache-2.0
# The paged KV store.

cdef extern from "kv/kv.h":
    ctypedef struct sp_kv_config:
        uint32_t layers
        uint32_t heads
        uint32_t head_dim
        bint f32
        uint32_t pages
    ctypedef struct sp_kv:
        sp_kv_config config
        size_t page_bytes
        uint32_t *holders
        uint32_t free_count
    sp_status sp_kv_create(sp_kv **out, const sp_kv_config *config)
    void sp_kv_destroy(sp_kv *kv)
    int32_t sp_kv_alloc(sp_kv *kv)
    void sp_kv_hold(sp_kv *kv, int32_t page)
    void sp_kv_release(sp_kv *kv, int32_t page)


cdef class KvPool:
    """Pages of keys and values: 64 positions each, for all layers of one model.

    Memory is taken when a page is first used. Pages have holders: `alloc` makes the first one, `hold` another,
    `release` ends one. Not thread-safe: one owner at a time.
    """

    cdef sp_kv *ptr

    def __cinit__(self, *, layers: int, heads: int, head_dim: int, dtype: str, pages: int):
        cdef sp_kv_config config
        config.layers = layers
        config.heads = heads
        config.head_dim = head_dim
        config.f32 = {"f16": False, "f32": True}[dtype]
        config.pages = pages
        check(sp_kv_create(&self.ptr, &config), f"reserving {pages} KV pages")

    def __dealloc__(self):
        sp_kv_destroy(self.ptr)

    @property
    def total(self) -> int:
        """Pages in all."""
        return self.ptr.config.pages

    @property
    def free(self) -> int:
        """Pages without a holder."""
        return self.ptr.free_count

    @property
    def page_bytes(self) -> int:
        """Bytes of one page."""
        return self.ptr.page_bytes

    cdef int held(self, int32_t page) except -1:
        if not 0 <= page < <int32_t>self.ptr.config.pages or self.ptr.holders[page] == 0:
            raise _errors.InvalidParameterError(f"KV page {page} is not in use")
        return 0

    def alloc(self) -> int:
        """A zeroed page. Raises OutOfMemoryError if all pages have holders."""
        cdef int32_t page = sp_kv_alloc(self.ptr)
        if page < 0:
            raise _errors.OutOfMemoryError(f"all {self.total} KV pages are in use; end a session or raise ctx")
        return page

    def hold(self, page: int) -> None:
        """Adds a holder to a page in use."""
        self.held(page)
        sp_kv_hold(self.ptr, page)

    def release(self, page: int) -> None:
        """Ends one holder's claim; the last one frees the page."""
        self.held(page)
        sp_kv_release(self.ptr, page)
