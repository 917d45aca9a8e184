package nodescript

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// A question begins after the headers of UDP (RFC 768) and DNS (RFC 1035, 4.1.1). Sizes are in
// bytes.
const (
	udpHeader, dnsHeader = 8, 12
	// chunk is the size that one expression of nft compares.
	chunk = 16
)

// DNSQuestion returns nft expressions that match a UDP packet whose first DNS question is for this
// name, of any type and with the same case. It returns an error for an invalid name.
func DNSQuestion(host string) (string, error) {
	name, err := dnsmessage.NewName(strings.TrimSuffix(host, ".") + ".")
	if err != nil {
		return "", fmt.Errorf("name %q: %w", host, err)
	}
	builder := dnsmessage.NewBuilder(nil, dnsmessage.Header{})
	if err := builder.StartQuestions(); err != nil {
		return "", err
	}
	if err := builder.Question(dnsmessage.Question{Name: name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}); err != nil {
		return "", fmt.Errorf("name %q: %w", host, err)
	}
	message, err := builder.Finish()
	if err != nil {
		return "", fmt.Errorf("name %q: %w", host, err)
	}
	const typeAndClass = 2 * 2
	wire := message[dnsHeader : len(message)-typeAndClass]
	var expressions []string
	offset := udpHeader + dnsHeader
	for part := range slices.Chunk(wire, chunk) {
		expressions = append(expressions, fmt.Sprintf("@th,%d,%d 0x%x", 8*offset, 8*len(part), part))
		offset += len(part)
	}
	return strings.Join(expressions, " "), nil
}
