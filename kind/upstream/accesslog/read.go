package accesslog

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// ReadUntil reads records, one JSON object a line, until it has seen that of a request for SettlePath with the query
// mark, and returns those before it without the other requests for SettlePath. A line that is not a record, and an end
// before the mark, is an error: the log is evidence, and a lost line would count as "nobody asked".
func ReadUntil(r io.Reader, mark string) (Records, error) {
	records := Records{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var record Record
		if err := json.Unmarshal(lines.Bytes(), &record); err != nil {
			return nil, fmt.Errorf("access log, line %d, %q: %w", n, lines.Text(), err)
		}
		switch {
		case record.Path != SettlePath:
			records = append(records, record)
		case record.Query == mark:
			return records, nil
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("access log: %w", err)
	}
	return nil, fmt.Errorf("access log ends before the request %s?%s: %w", SettlePath, mark, io.ErrUnexpectedEOF)
}
