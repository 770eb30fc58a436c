// Package serve is limpet serve: the page that shows sessions in a browser.
package serve

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/cmd/limpet/internal/approve"
	"github.com/limpet-sh/limpet/cmd/limpet/internal/noun"
	"github.com/limpet-sh/limpet/cmd/limpet/internal/sessions"
	"github.com/limpet-sh/limpet/internal/page"
	"github.com/limpet-sh/limpet/internal/questions"
)

// Command is limpet serve.
func Command(p sessions.Program, auditor Auditor) *cobra.Command {
	var listen, notify, recordings string
	var open, typing, answering bool
	var on sessions.Others
	var pair certificate
	cmd := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Show the sessions of this machine in a browser",
		Long: `Serve prints a link to a page, which shows the sessions by name of this machine until Ctrl-C: which there are, each command that runs in
one, what it prints, and how it ends, as it comes; the jobs of a session with their logs; its terminals with what is on their screens;
and the questions that wait for an answer (limpet approvals). It changes nothing, unless one of the following allows that; the two are
independent of each other.

--allow-typing lets a person take over a terminal on the page, type into it, and hand it back by a button or Ctrl-\. As long as it is
taken over it has the size of the page's window. It lets them stop jobs, too.

--allow-answers lets a person answer questions on the page: whether something may run, with all answers that limpet approvals answer has,
and for passwords (limpet help passwords). Start it at a terminal of yours: what runs in a session, a job or a terminal of limpet cannot
answer, and neither can a limpet serve that runs there, nor what asks the page from there.

Whoever has the link sees all of that, with this user's secrets if they are printed; with --allow-typing they can do all that this user
can, and with --allow-answers they let agents do it. The link has a token, which is another one each time and
which browsers send to nobody else, and it leads to this machine alone: no address but those of the loopback is listened at. From another
machine, use an SSH tunnel: ssh -L 7334:127.0.0.1:7334 HOST limpet serve --listen 127.0.0.1:7334. With a certificate (--tls-cert,
--tls-key) it is served by https, at any address of this machine, for whoever has the link; the page is reached by the names and addresses
that the certificate is for, and no other.

--notify runs a command of bash's whenever a question begins to wait, a job ends, waits for what is typed on its terminal, or prints a line that it is
watched for, and when the program of a terminal ends by itself. It reads what there is to say as one line on its standard input; LIMPET_NOTICE is
question, password, job_ended, job_matched, job_waits or terminal_ended. One runs at a time, for 30 s at most. A page that is open tells
the same, and shows it on the desktop to whoever allows that there.

To show a session or a terminal to others, make a share link on the page: it is for viewing that one alone, or with --allow-typing for typing
there too. It expires after 24 hours at most, is revoked on the page, ends with limpet serve, and never answers questions.

--recordings lists the recordings of terminals in a directory, which limpet term record and limpet term start --record make (*.cast), and
plays them on the page, for whoever has the link that is printed, and by no share link. What was typed is not sent to the browser.

--audit writes down what people do by the page, as limpet help audit says: questions that they answer, terminals that they take over and hand
back, with how many bytes they typed, jobs that they stop, and share links. What they type is not written down.

--on shows the sessions of another machine as well, with its name behind theirs: build@web1. It is reached as limpet run --on reaches it; if the
connection is lost, it is dialled again, for as long as limpet serve runs; a machine that was started again is another one, for which
limpet serve must be started anew. Its questions are answered as those of this machine,
but that "always" is not among the answers: rules are files over there.

/metrics has numbers for Prometheus, with "Authorization: Bearer" and the token, which is what follows # in the link.

--open has the desktop's browser open the link (xdg-open, or open on macOS).`,
		Example: "  limpet serve\n  limpet serve --open --allow-typing --allow-answers\n  limpet serve --listen 127.0.0.1:7334\n  limpet serve --on web1 --on docker://api\n  limpet serve --notify 'notify-send limpet \"$(cat)\"'",
		Args:    noun.Wants(0, 0, "takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if answering && approve.Within() {
				return errors.New("--allow-answers: this limpet serve runs in a session, a job or a terminal of limpet, which is what questions are about: start it at a terminal of your own, or without --allow-answers")
			}
			if err := pair.load(cmd); err != nil {
				return err
			}
			addr, err := listenAddr(cmd, listen, pair.config != nil)
			if err != nil {
				return err
			}
			ctx, stop := p.Until(cmd.Context())
			defer stop()
			opts := &page.Options{Typing: typing, Answering: answering, TLS: pair.config, Hosts: pair.hosts}
			if cmd.Flags().Changed("notify") {
				n, err := newNotifier(cmd, notify, p.Note)
				if err != nil {
					return err
				}
				defer n.close()
				opts.Notify = n.tell
			}
			if cmd.Flags().Changed("recordings") {
				if opts.Recordings, err = openRecordings(cmd, recordings); err != nil {
					return err
				}
				defer opts.Recordings.Close() // It was read only.
			}
			write, required, err := auditor.Open(cmd)
			if err != nil {
				return err
			}
			if write != nil {
				opts.Record = (&recorder{write: write, required: required, note: p.Note}).record
			}
			others, leave, err := p.DialAll(ctx, on)
			if err != nil {
				return err
			}
			defer leave()
			err = serve(ctx, p, addr, open, others, opts)
			if ended := p.Ended(ctx); ended != nil && err == nil {
				return ended
			}
			return err
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "listen at `HOST:PORT`, of the loopback, or with --tls-cert of any address; port 0 is any that is free")
	cmd.Flags().StringVar(&pair.cert, "tls-cert", "", "serve https, by the certificate of `FILE`, in PEM, with those that lead to a root behind it")
	cmd.Flags().StringVar(&pair.key, "tls-key", "", "the private key of --tls-cert, in PEM, in a `FILE` that nobody else can read")
	cmd.Flags().BoolVar(&typing, "allow-typing", false, "let whoever has the link type into the sessions' terminals, and stop their jobs")
	cmd.Flags().BoolVar(&answering, "allow-answers", false, "let whoever has the link answer questions, and give passwords to programs that ask")
	cmd.Flags().StringVar(&notify, "notify", "", "run `COMMAND` when a question waits, a job ends or waits, or a watched line comes; it reads the text on its stdin")
	on.Add(cmd, "show the sessions of another machine, too, which is reached by `TARGET`; see limpet help run; may be said several times")
	cmd.Flags().StringVar(&recordings, "recordings", "", "play the recordings of terminals in `DIR`, files *.cast, on the page")
	auditor.Add(cmd)
	cmd.Flags().BoolVar(&open, "open", false, "open the link in a browser")
	return cmd
}

// listenAddr returns the address that is meant by --listen. Without TLS a host other than localhost must be an address of the loopback: what is
// sent there leaves the machine for nobody to read.
func listenAddr(cmd *cobra.Command, said string, tls bool) (netip.AddrPort, error) {
	wrong := func() (netip.AddrPort, error) {
		return netip.AddrPort{}, noun.Usagef(cmd, "--listen %q: wants HOST:PORT, as in 127.0.0.1:7334, localhost:0 or [::1]:7334", said)
	}
	host, port, err := net.SplitHostPort(said)
	if err != nil {
		return wrong()
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return wrong()
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	ip, err := netip.ParseAddr(host)
	if tls && (err != nil || ip.Zone() != "") {
		return netip.AddrPort{}, noun.Usagef(cmd, "--listen %q: %q is no address of this machine, as 192.0.2.7, 0.0.0.0 or [::]", said, host)
	}
	if !tls && (err != nil || !ip.Unmap().IsLoopback() || ip.Zone() != "") {
		return netip.AddrPort{}, noun.Usagef(cmd, "--listen %q: %q is no address of the loopback, and there is no TLS: whoever can listen on the network would read the token and all that is shown; "+
			"use 127.0.0.1:%s, and an SSH tunnel to it (ssh -L) from other machines, or give a certificate by --tls-cert and --tls-key", said, host, port)
	}
	return netip.AddrPortFrom(ip.Unmap(), uint16(n)), nil
}

// openRecordings opens the directory of --recordings.
func openRecordings(cmd *cobra.Command, dir string) (*os.Root, error) {
	if dir == "" {
		return nil, noun.Usagef(cmd, `--recordings: "" is no directory; is a variable empty?`)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("--recordings: %w: name a directory with recordings of limpet term record", err)
	}
	return root, nil
}

// serve serves the page until ctx ends.
func serve(ctx context.Context, p sessions.Program, addr netip.AddrPort, open bool, others []sessions.Other, opts *page.Options) error {
	place, err := p.Registry()
	if err != nil {
		return err
	}
	listener, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(addr))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("--listen %v: another program listens there, perhaps another limpet serve: choose another port, or 0 for any that is free", addr)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("--listen %v: this user may not listen there: choose a port above 1023", addr)
	case err != nil:
		return fmt.Errorf("--listen %v: %w", addr, err)
	}
	token := rand.Text() // It has 130 bits.
	var elsewhere []page.Elsewhere
	for _, one := range others {
		far := page.Elsewhere{Target: one.Target, Place: one}
		if asks, err := one.Questions(); err != nil {
			p.Note("%v; the page does not show them", err)
		} else {
			far.Asks, far.Desk = asks, approve.Desk{At: asks, Target: one.Target}
		}
		elsewhere = append(elsewhere, far)
	}
	places := page.FromPlaces(place, place.Questions(), approve.Desk{At: questions.Dir(place.Questions())}, elsewhere...)
	defer places.Close()
	h, err := page.New(places, token, listener.Addr(), opts)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	link := fmt.Sprintf("http://%v/#%s", listener.Addr(), token)
	if opts.TLS != nil {
		link = fmt.Sprintf("https://%s/#%s", net.JoinHostPort(opts.Hosts[0], strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)), token)
	}
	if _, err := fmt.Fprintln(os.Stdout, link); err != nil {
		h.Close()
		return errors.Join(err, listener.Close())
	}
	if open {
		done, err := openBrowser(link)
		defer done()
		if err != nil {
			p.Note("no browser was opened: %v; open the link yourself", err)
		}
	}
	return page.Serve(ctx, listener, h)
}
