/**
 * Whether an Accept header asks for HTML: it names the type itself, which browsers do and programs that take anything do not.
 * A quality of 0 refuses it (RFC 9110, 12.5.1).
 */
export const asksForHtml = (accept: string | undefined): boolean => names(accept, 'text/html')

/** Whether an Accept header asks for JSON and not for HTML. */
export const asksForJson = (accept: string | undefined): boolean =>
  names(accept, 'application/json') && !asksForHtml(accept)

function names(accept: string | undefined, type: string): boolean {
  return (accept ?? '').split(',').some((range) => {
    const [name = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
    return name === type && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))
  })
}
