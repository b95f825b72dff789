"""Standard output and error as the runner finds them: any encoding, a closed pipe, a full disk,
words of strangers."""
