import { pino, type Logger } from 'pino'
import { describeLine } from './describe-line.js'

/** Characters of log that may wait for a reader of standard error. What comes on top is dropped: a log must never stall a call. */
const BACKLOG = 1024 * 1024

const SECRETS = ['authorization', 'api_key', 'api_secret', 'token', 'confirm_token']

/** Where log lines go. */
interface LineSink {
  write(line: string): void
}

let shared: LineSink | undefined

/**
 * The server log: everything a program says on standard error, for both transports, since standard output carries JSON-RPC or the audit
 * log. JSON lines, or plain ones where standard error is a terminal (D109). Fields that are named like secrets are blanked, those of a
 * logged error as well.
 */
export function createLogger(level: string, sink: LineSink = (shared ??= standardError())): Logger {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: { paths: SECRETS.flatMap((name) => [name, `err.${name}`]), censor: '[redacted]' },
  }
  return pino(options, sink)
}

/** The same log for what the operator must see whatever MCP_LOG_LEVEL says: how the process starts, and why it does not. */
export const alwaysSaid = (log: Logger): Logger => log.child({}, { level: 'info' })

/** What Node.js itself warns of becomes a line like any other. */
export function takeWarnings(log: Logger): void {
  process.removeAllListeners('warning')
  process.on('warning', (err) => log.warn({ err }, `Node.js warns: ${err.message}`))
}

/** Writes the lines of one turn of the event loop at once, which a busy server does instead of one write for each. */
function standardError(): LineSink {
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
      lines += stderr.isTTY ? describeLine(line) : line
    },
  }
}
