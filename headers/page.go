package headers

// HTMLType is the media type of what [AppendPage] appends.
const HTMLType = "text/html; charset=utf-8"

// PageCSP is the Content-Security-Policy to send with a page. The page's style
// and script are the same bytes for every client (what differs is data in
// attributes), so their hashes do without a nonce.
const PageCSP = "default-src 'none'; " +
	"script-src 'sha256-CEt7cn33tK1Baf60foK+bGpASNMrrWiD+DwaZQ2tkV0='; " +
	"style-src 'sha256-U4r6nZFAG2hpMhOhrvxnWc14r02/VUsXaqet8k4Nz1Y='; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'self'"

// Page is a refusal as an HTML page for people.
type Page struct {
	Refusal

	// Lang is the language of the page, as [Language] returns it; empty: en.
	Lang string

	// Title is the heading, Message the paragraph below it; empty: a text in
	// Lang. They are text, not HTML.
	Title, Message string

	// Reload lets the page load itself again when the wait is over. Set it for
	// GET and HEAD only: after a POST the browser would ask to send the form
	// again. Without it the page only says that one may try again.
	Reload bool
}

// AppendPage appends p as a whole HTML document that loads nothing else.
//
// Without a script it shows the wait and a link to the same address. With one
// it counts down by the clock, not by ticks, so that a tab in the background
// or a computer asleep shows the right time when looked at; when the wait is
// over the link appears, and with Reload the page loads again after a random
// moment more, so that clients refused together do not return together.
//
// Send it with [HTMLType], [PageCSP], Retry-After and Cache-Control: no-store,
// lest a page restored from a cache count down again.
func AppendPage(dst []byte, p Page) []byte {
	w := wordsOf(p.Lang)
	if p.Lang == "" {
		p.Lang = "en"
	}
	if p.Title == "" {
		p.Title = w.title(p.Reason)
	}
	dst = append(dst, "<!DOCTYPE html>\n<html lang=\""...)
	dst = inHTML.text(dst, p.Lang)
	dst = append(dst, "\">\n<head>\n<meta charset=\"utf-8\">\n"+
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"+
		"<meta name=\"robots\" content=\"noindex\">\n<title>"...)
	dst = inHTML.text(dst, p.Title)
	dst = append(dst, "</title>\n<style>"+pageStyle+"</style>\n</head>\n<body>\n<main>\n<h1>"...)
	dst = inHTML.text(dst, p.Title)
	dst = append(dst, "</h1>\n"...)
	dst = appendReason(dst, w, &p)
	if wait := p.wait(); wait >= 0 {
		dst = appendCountdown(dst, w, retrySeconds(wait), p.Reload)
	} else {
		dst = append(dst, "<p>"...)
		dst = inHTML.text(dst, w.never(p.tooLarge()))
		dst = append(dst, "</p>\n"...)
	}
	return append(dst, "</main>\n</body>\n</html>\n"...)
}

// appendReason appends the paragraph that says why: the operator's words, or
// the limit's clause made a sentence, or nothing.
func appendReason(dst []byte, w words, p *Page) []byte {
	i := longest(p.Limits)
	if p.Message == "" && (i < 0 || p.Limits[i].Policy == "") {
		return dst
	}
	dst = append(dst, "<p>"...)
	if p.Message != "" {
		dst = inHTML.text(dst, p.Message)
	} else {
		start := len(dst)
		dst = w.limit(dst, inHTML, &p.Limits[i])
		if c := dst[start]; 'a' <= c && c <= 'z' {
			dst[start] = c - 'a' + 'A'
		}
		dst = inHTML.text(dst, w.stop())
	}
	return append(dst, "</p>\n"...)
}

func appendCountdown(dst []byte, w words, seconds int64, reload bool) []byte {
	dst = append(dst, `<p id="wait" data-seconds="`...)
	dst = inHTML.number(dst, seconds)
	if reload {
		dst = append(dst, `" data-reload="yes`...)
	}
	dst = append(dst, `">`...)
	before, after := w.again()
	dst = inHTML.text(dst, before)
	dst = append(dst, `<b id="left" role="timer">`...)
	dst = w.wait(dst, inHTML, seconds)
	dst = append(dst, `</b>`...)
	dst = inHTML.text(dst, after)
	dst = append(dst, "</p>\n<p id=\"ready\" role=\"status\" data-text=\""...)
	dst = inHTML.text(dst, w.ready())
	dst = append(dst, "\"></p>\n<p><a id=\"retry\" href=\"\">"...)
	dst = inHTML.text(dst, w.retry())
	return append(dst, "</a></p>\n<script>"+pageScript+"</script>\n"...)
}

// pageStyle follows the reader's choice of light or dark through the system's
// colours. A change here changes the hash in PageCSP; a test says to what.
const pageStyle = `
:root { color-scheme: light dark; font: 100%/1.5 system-ui, sans-serif; }
body { margin: 0; background: Canvas; color: CanvasText; }
main { max-width: 34rem; margin: 20vh auto 0; padding: 0 1.5rem; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; font-weight: 600; }
#left { font-variant-numeric: tabular-nums; }
`

// pageScript waits for a moment of the clock. It adds up to a second and a
// tenth of the wait, half a minute at most, before it loads the page again:
// spread, and never earlier than told (case B49).
const pageScript = `
(function () {
  var wait = document.getElementById('wait')
  var left = document.getElementById('left')
  var ready = document.getElementById('ready')
  var retry = document.getElementById('retry')
  var seconds = Number(wait.dataset.seconds)
  var end = Date.now() + seconds * 1000
  var timer

  function part(n, unit) {
    return new Intl.NumberFormat(document.documentElement.lang,
      { style: 'unit', unit: unit, unitDisplay: 'long' }).format(n)
  }
  function words(s) {
    var m = Math.ceil(s / 60), h = Math.ceil(s / 3600)
    try {
      if (s >= 86400) return part(Math.floor(h / 24), 'day') + ' ' + part(h % 24, 'hour')
      if (s >= 3600) return part(Math.floor(m / 60), 'hour') + ' ' + part(m % 60, 'minute')
      if (s >= 120) return part(Math.floor(s / 60), 'minute') + ' ' + part(s % 60, 'second')
      return part(s, 'second')
    } catch (e) {
      return s + ' s'
    }
  }
  function tick() {
    clearTimeout(timer)
    var ms = end - Date.now()
    if (ms > 0) {
      left.textContent = words(Math.ceil(ms / 1000))
      timer = setTimeout(tick, Math.min(ms, ms % 1000 + 1))
      return
    }
    document.removeEventListener('visibilitychange', tick)
    wait.hidden = true
    retry.hidden = false
    ready.textContent = ready.dataset.text
    if (wait.dataset.reload) {
      var spread = Math.min(1 + seconds / 10, 30)
      setTimeout(function () { location.reload() }, Math.random() * spread * 1000)
    }
  }
  retry.hidden = true
  document.addEventListener('visibilitychange', tick)
  tick()
})()
`
