package headers

type chinese struct{}

func (chinese) title(r Reason) string {
	if r == ReducedCapacity {
		return "服务繁忙"
	}
	return "请求过于频繁"
}

func (chinese) colon() string { return "：" }
func (chinese) stop() string  { return "。" }
func (chinese) gap() string   { return "" }

func (w chinese) limit(dst []byte, e escaping, l *Limit) []byte {
	dst = e.text(dst, "限制“")
	dst = e.text(dst, l.Policy)
	dst = e.text(dst, "”")
	if l.Quota <= 0 {
		return e.text(dst, "不允许任何请求")
	}
	switch n, u := inUnits(l.Window); {
	case l.Window <= 0 && l.countsRequests():
		dst = e.text(dst, "同时")
	case l.Window <= 0:
	case n == 1:
		dst = e.text(dst, "每")
		dst = e.text(dst, w.time(u))
	default:
		dst = e.text(dst, "每 ")
		dst = w.count(dst, e, n, u)
	}
	dst = e.text(dst, "允许 ")
	dst = e.number(dst, l.Quota)
	dst = e.text(dst, " ")
	if l.countsRequests() {
		return e.text(dst, "次")
	}
	return e.text(dst, w.unit(l.Unit))
}

func (chinese) unit(unit string) string {
	switch unit {
	case "content-bytes":
		return "字节"
	case "concurrent-requests":
		return "个并发请求"
	}
	return unit
}

func (chinese) time(u timeUnit) string {
	return [...]string{"天", "小时", "分钟", "秒", "毫秒"}[u]
}

func (w chinese) count(dst []byte, e escaping, n int64, u timeUnit) []byte {
	dst = e.number(dst, n)
	dst = e.text(dst, " ")
	return e.text(dst, w.time(u))
}

func (w chinese) wait(dst []byte, e escaping, seconds int64) []byte {
	n, u, m, v := waitUnits(seconds)
	dst = w.count(dst, e, n, u)
	if m == 0 {
		return dst
	}
	dst = e.text(dst, " ")
	return w.count(dst, e, m, v)
}

func (chinese) again() (before, after string) { return "请在 ", "后重试。" }

func (chinese) never(tooLarge bool) string {
	if tooLarge {
		return "此请求超出了该限制所能允许的上限。"
	}
	return "重试不会成功。"
}

func (chinese) ready() string { return "现在可以重试了。" }
func (chinese) retry() string { return "重试" }
