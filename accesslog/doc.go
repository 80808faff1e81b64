// Package accesslog reads access logs of nginx, Apache, Caddy, Traefik, Envoy
// and of our own as one stream of records in time order, at a steady memory.
//
// Open takes any number of files in any order, gzipped or not, and Next hands
// out one Record after another:
//
//	logs, err := accesslog.Open([]string{"access.log.1.gz", "access.log"}, nil, accesslog.Options{})
//	if err != nil {
//		return err
//	}
//	defer logs.Close()
//	for {
//		rec, err := logs.Next()
//		if err == io.EOF {
//			break
//		}
//		if err != nil {
//			return err
//		}
//		fmt.Println(rec.Time(), rec.Addr, rec.Method, rec.Path)
//	}
//
// # Formats
//
// The shape of a line is told by its first bytes, line by line, so a file may
// change its format half way: "{" begins JSON, "[2006-" begins Envoy's default
// text, anything else is read as common or combined (see Format). Fields after
// those known are passed over.
//
// # Order
//
// A log is written when requests end, often with the time when they began, so
// its lines are a little out of order. Within a file, lines wait for each other
// for Options.Window of the log's own time. Files are merged by time, and a
// regular file is opened only when the merge comes near its first line: thirty
// rotated logs need one or two open files. Records of equal time keep the order
// of their lines, and of the names given to Open.
//
// # Memory
//
// The text fields of a Record are parts of the chunks that were read, so reading
// a line allocates nothing by itself and a chunk is let go with the last of its
// lines. Lines that wait for their order are bounded by Options.MaxBuffered, and
// their text by 256 MiB; where that does not suffice, records are delivered
// early, which may make others late.
//
// A wrong clock costs little: a record from the past is late, and one from the
// future waits for its time while those after it are delivered as they come.
//
// # Broken lines
//
// A line that cannot be read never stops the run: it is counted by its Reason,
// with the first of each kept as examples. A quoted field behind the status that
// the end of the line cuts off is read as far as it goes, since what a limiter
// needs stands before it.
//
// # What clients wrote
//
// Nearly every field of a log line was chosen by a client. Fields are delivered
// as the client sent them, with the escapes of the log undone: they may hold
// line breaks, control characters and bytes that are not UTF-8. Quote them
// before they are printed.
package accesslog
