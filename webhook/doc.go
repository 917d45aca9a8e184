// Package webhook contains the admission webhooks of the extension, one per subpackage.
package webhook
