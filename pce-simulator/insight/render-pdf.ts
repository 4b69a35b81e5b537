const LINES_PER_PAGE = 54
const LEADING = 13
const TOP = 780

/** Lines of text as a PDF (ISO 32000): A4 pages in one built-in font, nothing else. */
export function renderPdf(lines: readonly string[]): Buffer {
  const pages: string[][] = []
  for (let start = 0; start < lines.length; start += LINES_PER_PAGE)
    pages.push(lines.slice(start, start + LINES_PER_PAGE))
  // Objects 1 to 3 are the catalog, the page tree and the font; each page is two more.
  const kids = pages.map((_, index) => `${4 + index * 2} 0 R`).join(' ')
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Kids [${kids}] /Count ${pages.length} >>`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>',
    ...pages.flatMap((page, index) => [
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents ${5 + index * 2} 0 R ` +
        '/Resources << /Font << /F1 3 0 R >> >> >>',
      renderStream(page),
    ]),
  ]
  let text = '%PDF-1.4\n'
  const offsets = objects.map((object, index) => {
    const offset = text.length
    text += `${index + 1} 0 obj\n${object}\nendobj\n`
    return String(offset).padStart(10, '0')
  })
  const start = text.length
  text += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${offsets.map((offset) => `${offset} 00000 n \n`).join('')}`
  text += `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${start}\n%%EOF\n`
  return Buffer.from(text, 'latin1')
}

function renderStream(lines: readonly string[]): string {
  const shown = lines.map((line) => `(${escapeText(line)}) Tj T*`).join('\n')
  const content = `BT /F1 10 Tf ${LEADING} TL 50 ${TOP} Td\n${shown}\nET`
  return `<< /Length ${content.length} >>\nstream\n${content}\nendstream`
}

/** What the font cannot show becomes a question mark, so that a character is a byte. */
function escapeText(text: string): string {
  return text.replace(/[\\()]/g, '\\$&').replace(/[^\x20-\x7e]/g, '?')
}
