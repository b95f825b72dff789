"""Robust output to the terminal: any encoding, closed pipes, full disks, untrusted text."""
