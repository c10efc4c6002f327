/** Rows out and in as CSV. */
import { useRef, useState } from 'preact/hooks'
import { call, failure } from '../api'
import { collection, shared, slug } from '../shell'
import { useStore } from '../store'
import type { Resource, Row } from '../types'
import { count } from '../words'
import { type Filters, listUrl } from './columns'
import { Copy, Dialog, say } from './ui'

function download(text: string, name: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([text], { type: 'text/csv' }))
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}

export function Exchange({ resource, filters, rows, onImported }: { resource: Resource; filters: Filters; rows: Row[]; onImported: () => void }) {
  const { model } = useStore(shared)
  const [open, setOpen] = useState(false)
  if (!model) return null
  const csv = async (): Promise<string> => {
    const answer = await call('GET', listUrl(resource, model, resource.export ? { ...filters, after: '' } : filters, { first: resource.export ? 'all' : '100' }), { headers: { accept: 'text/csv' } })
    if (answer.status >= 400) throw failure(answer)
    return answer.text
  }
  const fetchCsv = () => csv().then((text) => download(text, `${slug(resource)}.csv`), (error: Error) => say(error.message))
  return (
    <>
      <button onClick={() => setOpen(true)}>Copy · CSV</button>
      {open && (
        <Dialog title={`${resource.many}: copy, export, import`} onClose={() => setOpen(false)}>
          <div class="row">
            <Copy label="Copy this page as JSON" text={() => JSON.stringify(rows, null, 2)} />
            <button class="quiet" onClick={() => csv().then((text) => navigator.clipboard.writeText(text)).then(() => say('Copied.'), (error: Error) => say(error.message))}>
              Copy as CSV
            </button>
          </div>
          <p>
            <button onClick={() => void fetchCsv()}>Export CSV</button> <span class="soft">{resource.export ? 'All rows that match the filter.' : 'The first 100 rows that match. Your role has no grant("export") for all of them.'}</span>
          </p>
          {resource.verbs.create && <Import resource={resource} onImported={onImported} />}
        </Dialog>
      )}
    </>
  )
}

function Import({ resource, onImported }: { resource: Resource; onImported: () => void }) {
  const file = useRef<HTMLInputElement>(null)
  const [faults, setFaults] = useState<string[]>([])
  const send = async () => {
    const chosen = file.current?.files?.[0]
    if (!chosen) return setFaults(['Choose a file first.'])
    const answer = await call('POST', collection(resource), { raw: await chosen.text(), headers: { 'content-type': 'text/csv' } })
    if (answer.status < 400) {
      setFaults([])
      say(`Imported ${count(Array.isArray(answer.json) ? answer.json.length : 1, 'row')}.`)
      return onImported()
    }
    const errors = (answer.json?.errors ?? []) as { pointer?: string; message: string }[]
    setFaults(errors.length ? errors.map((each) => `${each.pointer ?? ''} ${each.message}`) : [failure(answer).message])
  }
  return (
    <div class="form-field">
      <label>
        Import CSV
        <input ref={file} type="file" accept=".csv,text/csv" />
      </label>
      <p class="doc">Up to 100 rows, all of them or none. The first line names fields. For more rows: diptych import.</p>
      {faults.map((fault) => (
        <p key={fault} class="fault" role="alert">
          {fault}
        </p>
      ))}
      <div>
        <button onClick={() => void send()}>Import</button>
      </div>
    </div>
  )
}
