// Saves a text as a file of the person's.
export const saveFile = (name: string, type: string, parts: readonly string[]): void => {
  const url = URL.createObjectURL(new Blob([...parts], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // After the click the browser reads it by itself.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
};
