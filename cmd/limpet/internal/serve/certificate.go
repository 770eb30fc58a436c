package serve

import (
	"crypto/tls"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/cmd/limpet/internal/noun"
)

// certificate is what the page is served by, if it is by https.
type certificate struct {
	cert, key string // files

	config *tls.Config // nil: it is not
	hosts  []string    // for which it is: at least one
}

// load reads the files, if they are named.
func (c *certificate) load(cmd *cobra.Command) error {
	flags := cmd.Flags()
	if !flags.Changed("tls-cert") && !flags.Changed("tls-key") {
		return nil
	}
	if c.cert == "" || c.key == "" {
		return noun.Usagef(cmd, "--tls-cert and --tls-key go together, each with a file")
	}
	st, err := os.Stat(c.key)
	if err != nil {
		return fmt.Errorf("--tls-key: %w", err)
	}
	if st.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("--tls-key %s: others can read it: chmod 600 it", c.key)
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("--tls-cert %s and --tls-key %s: %w", c.cert, c.key, err)
	}
	leaf := pair.Leaf
	switch now := time.Now(); {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("--tls-cert %s: it was valid until %s", c.cert, leaf.NotAfter.Format(time.DateTime))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("--tls-cert %s: it is valid from %s on", c.cert, leaf.NotBefore.Format(time.DateTime))
	}
	// The page answers a fixed list of names: with a pattern another site could choose one.
	c.hosts = slices.DeleteFunc(slices.Clone(leaf.DNSNames), func(name string) bool { return strings.Contains(name, "*") })
	for _, ip := range leaf.IPAddresses {
		c.hosts = append(c.hosts, ip.String())
	}
	if len(c.hosts) == 0 {
		return fmt.Errorf("--tls-cert %s: it is for no name or address that is whole (%s): have one made for the name by which browsers reach this machine", c.cert, strings.Join(leaf.DNSNames, ", "))
	}
	c.config = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	return nil
}
