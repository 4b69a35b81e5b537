/** What a program has said on standard error: the lines of its log, and nothing else (D109). */
export interface LogLine {
  level: number
  msg: string
  [fact: string]: unknown
}

/** Throws for a line that is no line of the log. */
export const linesOf = (stderr: string): LogLine[] =>
  stderr
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as LogLine)

/** The messages alone. */
export const messagesOf = (stderr: string): string[] => linesOf(stderr).map(({ msg }) => msg)

/** Where a server listens, once it has said so. */
export const listeningOn = (stderr: string): string | undefined => / is listening on ([^"\s]+)"/.exec(stderr)?.[1]
