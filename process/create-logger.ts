import { pino, type Logger } from 'pino'

/** Characters of log that may wait for a reader of standard error. What comes on top is dropped: a log must never stall a call. */
const BACKLOG = 1024 * 1024

const SECRETS = ['authorization', 'api_key', 'api_secret', 'token', 'confirm_token']

/**
 * The server log: JSON lines on standard error, for both transports, since standard output carries JSON-RPC or the audit log.
 * Fields that are named like secrets are blanked, those of a logged error as well.
 */
export function createLogger(level: string): Logger {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: { paths: SECRETS.flatMap((name) => [name, `err.${name}`]), censor: '[redacted]' },
  }
  return pino(options, standardError())
}

/** Writes the lines of one turn of the event loop at once, which a busy server does instead of one write for each. */
function standardError() {
  const { stderr } = process
  let lines = ''
  const flush = () => {
    if (stderr.writableLength < BACKLOG) stderr.write(lines)
    lines = ''
  }
  // The parent process may close its end; that must not end the server.
  stderr.on('error', () => {})
  process.on('exit', flush)
  return {
    write(line: string) {
      if (lines === '') setImmediate(flush)
      lines += line
    },
  }
}
