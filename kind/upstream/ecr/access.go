package ecr

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/file"
)

// Access is the access key that gets tokens, and how long each of them lives.
type Access struct {
	AccessKeyID, SecretAccessKey string
	Life                         time.Duration
}

// Encode returns the content of a file for Replace.
func (a Access) Encode() ([]byte, error) {
	if a.AccessKeyID == "" || a.SecretAccessKey == "" || a.Life <= 0 {
		return nil, errors.New("an access key, its secret and the life of a token are required")
	}
	return json.Marshal(a)
}

// Replace reads the output of Encode, and atomically replaces the file at path.
func Replace(path string, in io.Reader) error {
	content, err := io.ReadAll(io.LimitReader(in, 1<<16))
	if err != nil {
		return fmt.Errorf("read the access to ECR: %w", err)
	}
	if _, err := decode(content); err != nil {
		return err
	}
	return file.Replace(path, content, 0o400)
}

// read returns the content of a file, or nil if there is none: then the registry is open.
func read(path string) (*Access, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the access to ECR: %w", err)
	}
	return decode(content)
}

// decode does not wrap the error of JSON, which could quote the content.
func decode(content []byte) (*Access, error) {
	access := &Access{}
	if json.Unmarshal(content, access) != nil {
		return nil, errors.New("access to ECR: not the JSON of an Access")
	}
	return access, nil
}
