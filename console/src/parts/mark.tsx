/** The sign of Diptych: two leaves. */
export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
      <path class="mark-left" d="M15 5 4 8v18l11 3z" />
      <path class="mark-right" d="m17 5 11 3v18l-11 3z" />
    </svg>
  )
}
