// Shows times in the time zone of the reader. Without it they are in UTC.
for (const time of document.querySelectorAll("time")) {
  const format = { dateStyle: "long", timeStyle: "short" };
  time.textContent = new Date(time.dateTime).toLocaleString(document.documentElement.lang, format);
}
