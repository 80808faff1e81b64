package accesslog

// A heap keeps its least item, as before tells, in items[0]. Container/heap would
// box every item.
type heap[T any] struct {
	items  []T
	before func(a, b T) bool
}

func (h *heap[T]) push(item T) {
	h.items = append(h.items, item)
	i := len(h.items) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !h.before(item, h.items[parent]) {
			break
		}
		h.items[i] = h.items[parent]
		i = parent
	}
	h.items[i] = item
}

func (h *heap[T]) pop() T {
	least, last := h.items[0], len(h.items)-1
	h.items[0] = h.items[last]
	clear(h.items[last:])
	h.items = h.items[:last]
	if last > 0 {
		h.fix()
	}
	return least
}

// fix restores the order after items[0] was changed.
func (h *heap[T]) fix() {
	item, i := h.items[0], 0
	for {
		least := 2*i + 1
		if least >= len(h.items) {
			break
		}
		if right := least + 1; right < len(h.items) && h.before(h.items[right], h.items[least]) {
			least = right
		}
		if !h.before(h.items[least], item) {
			break
		}
		h.items[i] = h.items[least]
		i = least
	}
	h.items[i] = item
}
