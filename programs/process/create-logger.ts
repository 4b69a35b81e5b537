import { pino, type Logger } from 'pino'
import { escapeJson } from '../../domain/text/escape-text.js'
import { describeLine } from './describe-line.js'

/**
 * Maximum number of characters of log output that may wait while the reader of standard error is slow. Beyond it, new
 * lines are dropped, because logging must never delay a call.
 */
const BACKLOG = 1024 * 1024

const SECRETS = ['authorization', 'api_key', 'api_secret', 'token', 'confirm_token', 'pairing_key', 'activation_code']

/** The stream or file to which log lines are written. */
interface LineSink {
  write(line: string): void
}

let shared: LineSink | undefined

/**
 * Creates the server log. With both transports, it writes to standard error, because standard output carries JSON-RPC
 * or the audit log. Lines are JSON, or readable text if standard error is a terminal (D109). The values of fields that
 * have the name of a secret are replaced, also in logged errors. Hidden characters are escaped as in the audit log,
 * because texts of the PCE and of clients get into lines.
 */
export function createLogger(level: string, sink: LineSink = (shared ??= standardError())): Logger {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: { paths: SECRETS.flatMap((name) => [name, `err.${name}`]), censor: '[redacted]' },
  }
  return pino(options, { write: (line) => sink.write(escapeJson(line)) })
}

/**
 * Creates a child logger that writes its messages even if MCP_LOG_LEVEL would suppress them. It is for messages that
 * the operator must see, such as how the process starts or why it does not.
 */
export const alwaysSaid = (log: Logger): Logger => log.child({}, { level: 'info' })

/** Writes Node.js's own warnings as regular log lines. */
export function takeWarnings(log: Logger): void {
  process.removeAllListeners('warning')
  process.on('warning', (err) => log.warn({ err }, `Node.js warns: ${err.message}`))
}

/**
 * Creates a log destination that writes all lines of one turn of the event loop in a single write. This saves a busy
 * server many small writes.
 */
function standardError(): LineSink {
  const { stderr } = process
  let lines = ''
  const flush = () => {
    if (stderr.writableLength < BACKLOG) stderr.write(lines)
    lines = ''
  }
  // The parent process may close the other end of the pipe, which causes an error. This must not stop the server.
  stderr.on('error', () => {})
  process.on('exit', flush)
  return {
    write(line: string) {
      if (lines === '') setImmediate(flush)
      lines += stderr.isTTY ? describeLine(line) : line
    },
  }
}
